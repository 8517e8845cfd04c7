"""Files that are complete or absent: atomic writes, checksums, locks.

A file that is written here goes to a hidden temporary name beside its target and is renamed at the
end, so that nobody ever reads half of it. Knows nothing about what the files mean.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmokit.errors import ElmoError, InputError

POLL_SECONDS = 0.1
"""Time between two attempts to take a lock that somebody else holds."""


# -- writing -----------------------------------------------------------------------------------


@contextmanager
def atomic_write(
    path: Path, *, temporary: Path | None = None, sync: bool = False
) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `path` when the block ends without an error.

    Args:
        path: The file to write. An older one is replaced at the end, in one step.
        temporary: The temporary path; by default a hidden, random name beside `path`. A fixed name
            suits large files of which a killed process should leave at most one.
        sync: Wait until the content has reached the disk, so that it survives a power failure.
    """
    temporary = temporary or path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield temporary
        if sync:
            sync_file(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if sync:
        sync_directory(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file, complete or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, data: Any) -> None:
    """Write an indented JSON file, complete or not at all."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def sync_file(path: Path) -> None:
    """Wait until the content of a file has reached the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory have reached the disk, where the system can do that."""
    with contextlib.suppress(OSError):  # Windows cannot open a directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# -- checksums ---------------------------------------------------------------------------------


def checksum(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of all files of a directory together with their names."""
    root = Path(path).expanduser()
    try:
        if not root.is_dir():
            with root.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    digest = hashlib.sha256()
    for file_path in sorted(root.rglob("*")):
        if file_path.is_file():
            name = file_path.relative_to(root).as_posix()
            digest.update(f"{name} {checksum(file_path)}\n".encode())
    return digest.hexdigest()


# -- locks -------------------------------------------------------------------------------------


if sys.platform == "win32":
    import ctypes
    import msvcrt

    _LOCK_VIOLATION = 33

    def try_lock(descriptor: int) -> bool:
        """Lock an open file for this process alone; return False if somebody else holds it.

        The lock ends when the file is closed or the process dies.

        Raises:
            OSError: The file system has no locks.
        """
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
        # Nobody else can read a locked byte, so lock one at 2^62, beyond the end of any file.
        if kernel.LockFile(handle, 0, 1 << 30, 1, 0):
            return True
        code = ctypes.get_last_error()
        if code == _LOCK_VIOLATION:
            return False
        raise ctypes.WinError(code)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock an open file for this process alone; return False if somebody else holds it.

        The lock ends when the file is closed or the process dies. Two threads exclude each other
        as well, provided that each opens the file for itself.

        Raises:
            OSError: The file system has no locks.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def wait_for_lock(path: Path, *, advice: str = "use a directory on a local disk") -> Iterator[None]:
    """Hold a lock file during the block, after waiting until nobody else holds it.

    Args:
        path: The lock file; created if it is missing, and never removed.
        advice: What a user can do if the file cannot be written or locked.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ElmoError(f"cannot write to {path.parent}: {error.strerror}; {advice}") from None
    try:
        try:
            while not try_lock(descriptor):
                time.sleep(POLL_SECONDS)
        except OSError as error:
            raise ElmoError(
                f"cannot lock files in {path.parent}: {error.strerror}; {advice}"
            ) from None
        yield
    finally:
        os.close(descriptor)  # which releases the lock
