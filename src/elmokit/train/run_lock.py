"""The lock of a run: one process writes its directory, also where several machines share it.

    DIR/training/lock.json    who writes: host, process, and a random token

The file system need not have locks. The holder touches the file every few seconds; whoever finds
it watches it for a minute, by its own clock. If it does not change, the holder's machine is dead or
cut off, and the lock is taken over, so that nothing waits for ever. A holder on the same machine
that is dead is noticed at once. A holder that was taken for dead and comes back notices that the
token has changed, and stops before it writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmokit.errors import TrainingError
from elmokit.storage import explain_write_errors, is_running, machine_id, write_text
from elmokit.threads import BackgroundThread
from elmokit.train.launch import process_start

LOCK = "lock.json"
BEAT_SECONDS = 5.0
"""Time between two touches of the file by its holder."""
STALE_SECONDS = 60.0
"""Time without a touch after which a holder on another machine is taken for dead."""
POLL_SECONDS = 0.5


class RunLock:
    """The lock of a run, held by this process."""

    def __init__(self, directory: Path) -> None:
        """Take the lock in a directory, after waiting for a holder that may be dead.

        Args:
            directory: The directory `training` of a run; created if it is missing.

        Raises:
            TrainingError: Another process trains in the directory.
        """
        self._path = directory / LOCK
        self._token = secrets.token_hex(8)
        self._lost = False
        self._stop = threading.Event()
        self._content = json.dumps(
            {
                "host": socket.gethostname(),
                "process": os.getpid(),
                "started": process_start(os.getpid()),
                "machine": machine_id(),
                "token": self._token,
            }
        )
        self._created = [path for path in (directory, directory.parent) if not path.exists()]
        with explain_write_errors(self._path):
            directory.mkdir(parents=True, exist_ok=True)
            self._acquire()
        self._thread = BackgroundThread(self._touch, "run lock")
        self._thread.start()

    def check(self) -> None:
        """Raise if another process has taken the lock over; call it before writing."""
        if self._lost:
            raise TrainingError(
                f"another process has continued the run in {self._path.parent.parent}, because "
                "this one was not heard from for a minute; this one has written nothing since"
            )

    def release(self) -> None:
        """Give the lock back."""
        self._stop.set()
        self._thread.join()
        if self._read().get("token") == self._token:
            self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # nothing stays behind where nothing was begun
            for path in self._created:
                path.rmdir()

    def _acquire(self) -> None:
        try:
            with self._path.open("x", encoding="utf-8") as file:
                file.write(self._content)
            return
        except FileExistsError:
            self._wait_until_stale()
        write_text(self._path, self._content)
        time.sleep(POLL_SECONDS)  # somebody else may have done the same; the last one has it
        if self._read().get("token") != self._token:
            self._refuse(self._read())

    def _wait_until_stale(self) -> None:
        """Return when the holder is dead or has gone; raise if it lives."""
        holder = self._read()
        process = holder.get("process")
        if holder.get("machine") == machine_id() and isinstance(process, int):
            start = process_start(process)
            if not is_running(process) or start != holder.get("started"):
                return
            if start:
                self._refuse(holder)
        seen, end = self._stamp(), time.monotonic() + STALE_SECONDS
        while (now := self._stamp()) is not None and time.monotonic() < end:
            if now != seen:
                self._refuse(holder)
            time.sleep(POLL_SECONDS)

    def _refuse(self, holder: dict[str, Any]) -> None:
        who = f"process {holder.get('process', '?')} on {holder.get('host', 'another host')}"
        raise TrainingError(
            f"{self._path.parent.parent} is in use: {who} is training there. Wait until it has "
            "ended, stop it, or give another directory"
        )

    def _touch(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            if self._read().get("token", self._token) != self._token:
                self._lost = True
                return
            with contextlib.suppress(OSError):
                os.utime(self._path)

    def _stamp(self) -> tuple[int, str] | None:
        """Return what changes when the holder touches the file; None if there is no file."""
        try:  # opened, since network file systems look at the server then
            with self._path.open("rb") as file:
                return os.fstat(file.fileno()).st_mtime_ns, file.read().decode(errors="replace")
        except FileNotFoundError:
            return None

    def _read(self) -> dict[str, Any]:
        return _read_holder(self._path)


def _read_holder(path: Path) -> dict[str, Any]:
    """Return the content of a lock file; empty if it is missing or not yet written."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remove_lock_of_dead(directory: Path) -> None:
    """Remove the lock of a process of this machine that has died; for runs that have ended."""
    holder = _read_holder(directory / LOCK)
    process = holder.get("process")
    if holder.get("machine") != machine_id() or not isinstance(process, int):
        return
    if not is_running(process) or process_start(process) != holder.get("started"):
        (directory / LOCK).unlink(missing_ok=True)


@contextmanager
def hold_run(directory: Path) -> Iterator[RunLock]:
    """Hold the lock of a run during the block."""
    lock = RunLock(directory)
    try:
        yield lock
    finally:
        lock.release()
