"""Threads that fail where others would wait for ever."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future, as_completed
from typing import Any

import pytest

from elmokit import threads
from elmokit.threads import BackgroundThread, ThreadPool


def test_a_thread_without_memory_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    thread = BackgroundThread(lambda: done.append(1), "fine")
    thread.start()
    thread.join()
    assert done == [1]
    monkeypatch.setattr(threads, "START_SECONDS", 0.01)
    silent = BackgroundThread(lambda: None, "silent")
    monkeypatch.setattr(silent, "_bootstrap", lambda: None)  # as if its first call had failed
    with pytest.raises(MemoryError, match="start the thread 'silent'"):
        silent.start()


def test_a_pool_calls_functions_in_its_threads() -> None:
    names: set[str] = set()
    initialized: list[str] = []

    def square(number: int) -> int:
        names.add(threading.current_thread().name)
        time.sleep(0.01)
        return number * number

    pool = ThreadPool(3, "some", lambda: initialized.append(threading.current_thread().name))
    with pool:
        assert list(pool.map(square, range(20))) == [number * number for number in range(20)]
        futures = [pool.submit(square, number) for number in range(5)]
        assert {future.result() for future in as_completed(futures)} == {0, 1, 4, 9, 16}
        with pytest.raises(ZeroDivisionError):
            pool.submit(lambda: 1 // 0).result()
        assert pool.submit(square, 7).result() == 49  # an error of a call harms no other
    assert names == set(initialized) == {"some_0", "some_1", "some_2"}
    with pytest.raises(RuntimeError, match="were stopped"):
        pool.submit(square, 1)


def test_results_may_be_late_and_calls_may_be_dropped() -> None:
    pool = ThreadPool(1, "one")
    go_on = threading.Event()
    running = pool.submit(go_on.wait)
    waiting = pool.submit(int)
    with pytest.raises(TimeoutError):
        running.result(0.01)
    pool.shutdown(wait=False, cancel_futures=True)
    go_on.set()
    assert running.result() is True
    with pytest.raises(CancelledError):
        waiting.result()


@pytest.mark.parametrize("place", ["set_running_or_notify_cancel", "set_result"])
@pytest.mark.parametrize("lasts", [1, 10**9])
def test_nobody_waits_for_a_thread_that_died(
    place: str, lasts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(threads, "FAILURE_TRIES", 2)
    left = lasts

    def fail_in_thread(method: Any) -> Any:
        def call(self: Future[Any], *arguments: Any) -> Any:
            nonlocal left
            if threading.current_thread().name.startswith("short") and left > 0:
                left -= 1
                raise MemoryError
            return method(self, *arguments)

        return call

    for name in {place, "set_exception"} if lasts > 1 else {place}:
        monkeypatch.setattr(Future, name, fail_in_thread(getattr(Future, name)))
    pool = ThreadPool(1, "short of memory")
    futures = [pool.submit(int) for _ in range(3)]
    for future in futures:
        with pytest.raises(MemoryError):
            future.result(30)  # a hang would be a TimeoutError
    pool.shutdown()


def test_a_process_ends_although_its_pool_was_not_shut_down() -> None:
    import subprocess
    import sys

    code = (
        "from elmokit.threads import ThreadPool; ThreadPool(2, 'x').submit(print, 'done').result()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
