"""A group of commands whose modules are imported when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class Lazy(click.Group):
    """Each command is the function `command` of a module."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **options: Any) -> None:
        """`modules` are their full names, by the commands' names."""
        super().__init__(*args, **options)
        self._modules = modules

    def list_commands(self, context: click.Context) -> list[str]:
        """In the order given, not of the alphabet."""
        return list(self._modules)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import it."""
        if name not in self._modules:
            return None
        command: click.Command = import_module(self._modules[name]).command
        return command
