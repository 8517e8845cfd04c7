"""Lazy exports: a package lists its public names, and a name's module is imported at first use.

    __getattr__, __dir__ = lazy_exports(__name__, {"Elmo": "elmokit.elmo"})

Importing a package that does this costs nothing. A module must not have the name of something
that its package exports, since importing a submodule sets the attribute of that name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from elmokit._deprecations import warn_renamed
from elmokit.extras import explain


def lazy_exports(
    package: str, modules: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    Args:
        package: `__name__` of the package.
        modules: The module that defines each public name.
        renamed: The new name of each public name that has changed; the old one works with a
            warning, and is not listed.
    """
    renamed = renamed or {}

    def load_name(name: str) -> Any:
        if name in renamed:
            warn_renamed(f"{package}.{name}", f"{package}.{renamed[name]}")
            return getattr(sys.modules[package], renamed[name])
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(modules[name]), name)
        except ImportError as error:
            missing = explain(error, f"{package}.{name}")
            if missing is None:
                raise
            raise missing from None
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return load_name, list_names
