"""A click group whose commands are imported when they are used."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group in which each command is the function `command` of a module."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **options: Any) -> None:
        """Create the group.

        Args:
            *args: Arguments of `click.Group`.
            modules: Full module name of each command, by the command's name.
            **options: Keyword arguments of `click.Group`.
        """
        super().__init__(*args, **options)
        self._modules = modules

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of the commands in the order of `modules`."""
        return list(self._modules)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return a command."""
        if name not in self._modules:
            return None
        command: click.Command = import_module(self._modules[name]).command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; for an unknown one, suggest the nearest names."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self._modules:
            near = difflib.get_close_matches(name.lower(), self._modules, n=3, cutoff=0.6)
            parent = context.command_path
            if near:
                advice = "; did you mean " + " or ".join(f"`{parent} {one}`" for one in near) + "?"
            else:
                advice = f"; the commands are {', '.join(self._modules)}"
            context.fail(f"No such command {name!r}{advice}")
        return super().resolve_command(context, args)
