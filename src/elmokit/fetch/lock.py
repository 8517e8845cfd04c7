"""One process at a time: a lock that the operating system frees when its holder dies.

Also holds between threads of one process, since each opens the file for itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import ElmoError

POLL_SECONDS = 0.1

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file; waits as long as somebody else does."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ElmoError(
            f"cannot write to the cache of models {path.parent}: {error.strerror}; set "
            "ELMOKIT_CACHE to a directory that can be written"
        ) from None
    try:
        while True:
            try:
                _try_lock(descriptor)
                break
            except (BlockingIOError, PermissionError):  # the second is Windows' word for it
                time.sleep(POLL_SECONDS)
            except OSError as error:
                raise ElmoError(
                    f"the cache of models {path.parent} cannot be locked: {error.strerror}; set "
                    "ELMOKIT_CACHE to a directory on a local disk"
                ) from None
        yield
    finally:
        os.close(descriptor)  # and with it the lock
