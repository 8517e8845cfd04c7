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


_NO_MEMORY = re.compile(
    r"can(no|')t allocate memory|can't start new thread|failed to map segment|bad_alloc|"
    r"out of memory|(error return|returned NULL) without (exception set|setting an exception)",
    re.IGNORECASE,
)
"""How the system, PyTorch and Python itself say that there is no memory left."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or the one that caused it, means that memory has run out."""
    while error is not None:
        if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
