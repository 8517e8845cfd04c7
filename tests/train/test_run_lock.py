"""One process writes a run, and nobody waits for ever."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from elmokit.errors import TrainingError
from elmokit.storage import machine_id
from elmokit.train import run_lock
from elmokit.train.launch import process_start
from elmokit.train.run_lock import RunLock, hold_run


def hold_by(directory: Path, **changes: object) -> Path:
    """Write the lock of somebody else."""
    holder = {"host": "node07", "process": 1, "started": "1", "machine": "elsewhere", "token": "x"}
    path = directory / "lock.json"
    path.write_text(json.dumps(holder | changes))
    return path


def test_held_and_given_back(tmp_path: Path) -> None:
    directory = tmp_path / "out" / "training"
    with hold_run(directory):
        assert json.loads((directory / "lock.json").read_text())["process"] == os.getpid()
        with pytest.raises(TrainingError, match=f"in use: process {os.getpid()} on .* is training"):
            RunLock(directory)
    assert list(tmp_path.iterdir()) == [], "nothing was begun, so nothing stays"


def test_a_dead_process_of_this_machine(tmp_path: Path) -> None:
    hold_by(tmp_path, machine=machine_id(), process=2**22 + 1)
    with hold_run(tmp_path) as lock:
        lock.check()


@pytest.mark.skipif(not process_start(os.getpid()), reason="needs /proc")
def test_a_number_that_another_process_has_now(tmp_path: Path) -> None:
    hold_by(tmp_path, machine=machine_id(), process=os.getpid(), started="long ago")
    with hold_run(tmp_path) as lock:
        lock.check()


def test_a_dead_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "STALE_SECONDS", 0.2)
    monkeypatch.setattr(run_lock, "POLL_SECONDS", 0.01)
    for content in ("", "[]", None):
        path = hold_by(tmp_path)
        if content is not None:
            path.write_text(content)
        with hold_run(tmp_path):
            assert json.loads(path.read_text())["machine"] == machine_id()
        assert not path.exists()


def test_a_host_that_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "POLL_SECONDS", 0.01)
    path = hold_by(tmp_path)
    touch = threading.Timer(0.1, lambda: os.utime(path, (1, 1)))
    touch.start()
    with pytest.raises(TrainingError, match="in use: process 1 on node07"):
        RunLock(tmp_path)
    touch.join()


def test_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "BEAT_SECONDS", 0.01)
    lock = RunLock(tmp_path)
    path = hold_by(tmp_path)
    lock._thread.join(10)
    with pytest.raises(TrainingError, match="another process has continued the run"):
        lock.check()
    lock.release()
    assert path.exists(), "it belongs to the other one"


def test_the_holder_touches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "BEAT_SECONDS", 0.01)
    with hold_run(tmp_path):
        os.utime(tmp_path / "lock.json", (1, 1))
        end = time.monotonic() + 10
        while (tmp_path / "lock.json").stat().st_mtime < 2:
            assert time.monotonic() < end
