"""Files that are complete or absent: atomic writes, errors of writing, checks, checksums, locks.

A file that is written here goes to a hidden temporary name beside its target and is renamed at the
end, so that nobody ever reads half of it. Errors of writing name the file and say what was kept.
Knows nothing about what the files mean.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import ElmoError, FormatError, InputError, WriteError
from elmokit.threads import BackgroundThread

POLL_SECONDS = 0.1
"""Time between two attempts to take a lock that somebody else holds."""
TOUCH_SECONDS = 10.0
"""Time between two signs of life of whoever holds a lock file."""
SILENT_SECONDS = 600.0
"""Time without a sign of life after which nobody waits for a lock any longer."""
FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""System errors of a full disk, a used-up quota, and a file that is too large for its disk."""
LARGE_DIRECTORY = 10_000
"""Number of files from which on a directory is searched for leftovers only once per process."""
_LARGE_DIRECTORIES: set[Path] = set()


# -- writing -----------------------------------------------------------------------------------


@contextmanager
def atomic_write(
    path: Path, *, temporary: Path | None = None, sync: bool = False
) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `path` when the block ends without an error.

    Args:
        path: The file to write. An older one is replaced at the end, in one step.
        temporary: The temporary path; by default a hidden name beside `path`. What killed processes
            have left under such a name is removed.
        sync: Wait until the content has reached the disk, so that it survives a power failure.
    """
    if temporary is None:
        remove_leftovers(path)
        temporary = temporary_path(path)
    with explain_write_errors(path):
        try:
            yield temporary
            if sync:
                sync_file(temporary)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):  # the reason is the error that is being raised
                temporary.unlink(missing_ok=True)
    if sync:
        sync_directory(path.parent)


def temporary_path(path: Path) -> Path:
    """Return a new hidden name beside a path, which says which process it belongs to."""
    owner = f"{machine_id()}-{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(f".{path.name}.{owner}.tmp")


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes have left under temporary names of a path.

    Processes of other machines and containers, which may share the disk, cannot be seen from here;
    what they leave stays.
    """
    directory = path.parent
    if directory in _LARGE_DIRECTORIES:
        return
    pattern = re.compile(rf"\.{re.escape(path.name)}\.{machine_id()}-(\d+)-[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):
        names = os.listdir(directory)
        if len(names) > LARGE_DIRECTORY:
            _LARGE_DIRECTORIES.add(directory)
        for name in names:
            if (match := pattern.fullmatch(name)) and not is_running(int(match[1])):
                leftover = directory / name
                if leftover.is_dir() and not leftover.is_symlink():
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    leftover.unlink(missing_ok=True)


def remove_directory(path: Path) -> None:
    """Remove a directory: it is complete or absent, even if the process is killed meanwhile."""
    remove_leftovers(path)
    temporary = temporary_path(path)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, temporary)
    shutil.rmtree(temporary, ignore_errors=True)


@cache
def machine_id() -> str:
    """Return a name for all processes that can see each other: a machine since it was started."""
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        with contextlib.suppress(OSError):
            parts.append(os.readlink(path) if "/ns/" in path else Path(path).read_text().strip())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def is_running(process: int) -> bool:
    """Return whether a process of this machine is running, as far as the system tells."""
    if sys.platform == "win32":
        return True  # nothing is removed there: os.kill would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def can_write_to(directory: Path) -> bool:
    """Return whether files can be made in a directory; create it if it does not exist."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)


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


# -- errors of writing --------------------------------------------------------------------------


@contextmanager
def explain_write_errors(
    path: str | Path, *, kept: str | Callable[[], str] | None = None
) -> Iterator[None]:
    """Turn errors of writing in the block into `WriteError`, which names the file and the reason.

    Errors of reading, which name a file elsewhere, stay as they are.

    Args:
        path: The file or directory that is written, as a user would name it.
        kept: What is still there and how to go on, or a function that returns it at the time of the
            error. By default it says whether an older file is unchanged. Where blocks are nested,
            the outermost that knows has the last word.
    """
    target = Path(path).expanduser()
    existed = target.exists()
    try:
        yield
    except Exception as error:
        failure = _write_failure(error, target, str(path))
        if failure is None or (isinstance(error, WriteError) and kept is None):
            raise
        explanation = kept() if callable(kept) else kept
        raise _write_error(failure, explanation or _default_advice(failure, existed)) from error


class _WriteFailure(NamedTuple):
    """What could not be written, and why."""

    path: str
    reason: str
    number: int | None
    """Number of the system error, if it is known."""


def _write_error(failure: _WriteFailure, kept: str) -> WriteError:
    error = WriteError(f"{failure.path} cannot be written: {failure.reason}; {kept}")
    error.path, error.reason, error.errno = failure
    return error


def _default_advice(failure: _WriteFailure, existed: bool) -> str:
    kept = "what was there before is unchanged" if existed else "nothing was kept"
    advice = "Make room or choose" if failure.number in FULL_ERRORS else "Choose"
    return f"{kept}. {advice} another place, then run it again"


def _write_failure(error: BaseException, target: Path, path: str) -> _WriteFailure | None:
    """Return how writing failed; None if the error has another cause."""
    if isinstance(error, WriteError):
        return _WriteFailure(error.path, error.reason, error.errno)
    if isinstance(error, ElmoError | BrokenPipeError):
        return None
    if (number := _full_disk(error)) is not None:
        return _WriteFailure(path, os.strerror(number), number)
    if type(error).__name__ == "SafetensorError":
        return _WriteFailure(path, " ".join(str(error).split()), None)
    if not isinstance(error, OSError):
        return None
    if isinstance(error.filename, str | os.PathLike):
        if not _is_near(Path(error.filename), target):
            return None
        return _WriteFailure(path, error.strerror or str(error), error.errno)
    # NumPy does not say why it could write only a part of an array.
    if re.search(r"requested and \d+ written", str(error)):
        return _WriteFailure(path, os.strerror(errno.ENOSPC), errno.ENOSPC)
    return None


def _full_disk(error: BaseException | None) -> int | None:
    """Return the number of a system error of `FULL_ERRORS` if the error, or its cause, is one."""
    while error is not None:
        number = error.errno if isinstance(error, OSError) else None
        if number is None:  # HDF5 and Rust put the number into the text
            found = re.search(r"(?:errno\s*=?\s*|os error )(\d+)", str(error))
            number = int(found[1]) if found else None
        if number in FULL_ERRORS:
            return number
        error = error.__cause__ or error.__context__
    return None


def _is_near(path: Path, target: Path) -> bool:
    """Return whether a path is the target, in it, a hidden path beside it, or a directory of it."""
    path, target = Path(os.path.abspath(path)), Path(os.path.abspath(target))
    if path == target or target in path.parents or path in target.parents:
        return True
    if target.parent not in path.parents:
        return False
    return path.relative_to(target.parent).parts[0].startswith(".")


# -- reading -----------------------------------------------------------------------------------


def check_regular(path: Path) -> None:
    """Raise `FormatError` if there is something else in the place of a regular file.

    Reading a pipe waits for ever, and a device has no end. A path that does not exist passes: the
    caller knows what is missing.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise FormatError(f"{path} is not a regular file; expected one, or a link to one")


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

    The holder touches the file now and then. Network file systems may keep the lock of a host that
    is dead; then the wait ends with an error.

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
            seen, since = os.fstat(descriptor).st_mtime_ns, time.monotonic()
            while not try_lock(descriptor):
                if (touched := os.fstat(descriptor).st_mtime_ns) != seen:
                    seen, since = touched, time.monotonic()
                elif time.monotonic() - since > SILENT_SECONDS:
                    raise ElmoError(
                        f"{path} is locked by a process that has shown no sign of life for "
                        f"{SILENT_SECONDS / 60:g} minutes: it hangs, or its host is dead. Stop it, "
                        "or delete the file if no process uses it, then run this again"
                    )
                time.sleep(POLL_SECONDS)
        except OSError as error:
            raise ElmoError(
                f"cannot lock files in {path.parent}: {error.strerror}; {advice}"
            ) from None
        with _touching(path):
            yield
    finally:
        os.close(descriptor)  # which releases the lock


@contextmanager
def _touching(path: Path) -> Iterator[None]:
    """Touch a file now and then during the block, to show that its holder lives."""
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(TOUCH_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(path)

    thread = BackgroundThread(touch, "lock")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
