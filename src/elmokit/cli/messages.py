"""Errors as one line for the command line."""

from __future__ import annotations

import os
import re

from elmokit.errors import ElmoError

_ARGUMENT = re.compile(r"\b[a-z_]+=[^\s()]+ \((--[a-z-]+)\)")
"""An argument of a function with the option that sets it, such as `overwrite=True (--force)`."""


def describe_for_command_line(error: BaseException) -> str:
    """Return the message of an error on one line, with options in place of Python arguments."""
    message = " ".join(_message(error).split()) or type(error).__name__
    return _ARGUMENT.sub(r"\1", message)


def _message(error: BaseException) -> str:
    """Return the message; `FILE: no such file or directory` for an error of the system."""
    if isinstance(error, ElmoError) or not isinstance(error, OSError) or not error.strerror:
        return str(error)
    reason = error.strerror[:1].lower() + error.strerror[1:]
    files = [
        os.fsdecode(file)
        for file in (error.filename, error.filename2)
        if isinstance(file, str | bytes | os.PathLike)
    ]
    return f"{' -> '.join(files)}: {reason}" if files else reason
