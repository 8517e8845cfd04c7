"""The lock of a model's folder."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from elmokit.errors import ElmoError
from elmokit.fetch import lock as module
from elmokit.fetch.lock import locked


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(20):
            with locked(tmp_path / ".lock"):
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.0005)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, inside) == (1, 0)


def test_it_is_freed_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / ".lock"):
        raise KeyboardInterrupt
    with locked(tmp_path / ".lock"):
        pass


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(module, "_try_lock", refuse)
    with pytest.raises(ElmoError, match="cannot be locked"), locked(tmp_path / ".lock"):
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ElmoError, match="ELMOKIT_CACHE"), locked(tmp_path / "none" / ".lock"):
        pass
