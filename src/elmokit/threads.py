"""Threads that fail where others wait for ever: without memory, a thread may die in silence.

Where the first call of a new thread fails, CPython prints so, and `Thread.start` waits for ever for
a sign of life. Where a thread of a `ThreadPoolExecutor` has no memory to take its next call or to
store a result, it ends, and whoever waits for the result waits for ever. Here both raise.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple, ParamSpec, TypeVar

START_SECONDS = 30.0
"""Time after which a new thread that gives no sign of life has failed to start."""
POLL_SECONDS = 1.0
"""How often waiting threads look whether those that they wait for are alive."""
FAILURE_TRIES = 50
"""How often a thread tries to tell that it has failed, while there is no memory for that."""

P = ParamSpec("P")
R = TypeVar("R")


class GuardedThread(threading.Thread):
    """A thread that raises `MemoryError` if there is no memory to start it."""

    def start(self) -> None:
        """Start the thread."""
        started: threading.Event = self._started  # type: ignore[attr-defined]
        wait = started.wait
        started.wait = lambda timeout=None: wait(START_SECONDS)  # type: ignore[method-assign]
        super().start()
        if not started.is_set():
            raise MemoryError(f"there is not enough memory to start the thread {self.name!r}")


class BackgroundThread(GuardedThread):
    """A guarded thread that does not keep the process alive."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        """Prepare the thread.

        Args:
            target: What it does.
            name: Its name.
        """
        super().__init__(target=target, name=name, daemon=True)


class ThreadPool(Executor):
    """Threads that call functions, started when they are needed; shut it down in the end.

    A future of it raises `MemoryError` if the thread that should compute its result has died.
    """

    def __init__(
        self, threads: int, name: str, initialize: Callable[[], object] = lambda: None
    ) -> None:
        """Prepare a pool.

        Args:
            threads: Number of threads at most.
            name: What the names of the threads begin with.
            initialize: Called once in each thread, before everything else.
        """
        self._most, self._name, self._initialize = threads, name, initialize
        self._threads: list[GuardedThread] = []
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_shut = False
        self._failed = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call a function in a thread; return the future of its result."""
        with self._lock:
            if self._is_shut:
                raise RuntimeError("the threads were stopped; nothing can be submitted any more")
            if self._failed:
                raise MemoryError(self._complaint)
            if len(self._threads) < self._most:
                name = f"{self._name}_{len(self._threads)}"
                thread = GuardedThread(target=self._work, name=name)
                thread.start()
                self._threads.append(thread)
            future: Future[R] = _PoolFuture(self._raise_if_failed)
            self._calls.put(_Call(future, lambda: fn(*args, **kwargs)))
            return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the threads after the calls that were submitted.

        Args:
            wait: Whether to wait for them.
            cancel_futures: Whether to drop calls that have not begun.
        """
        with self._lock:
            self._is_shut = True
            if cancel_futures:
                with contextlib.suppress(queue.Empty):
                    while True:
                        if (call := self._calls.get_nowait()) is not None:
                            call.future.cancel()
            for _ in self._threads:
                self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    @property
    def _complaint(self) -> str:
        return f"there is not enough memory for the threads {self._name!r}"

    def _raise_if_failed(self) -> None:
        """Raise `MemoryError` if a thread of the pool has died."""
        if self._failed or not all(thread.is_alive() for thread in self._threads):
            self._failed = True
            raise MemoryError(self._complaint)

    def _work(self) -> None:
        """Do calls until there are no more; in a thread."""
        call: _Call | None = None
        try:
            self._initialize()
            main = threading.main_thread()
            while True:
                try:
                    call = self._calls.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    if not main.is_alive():  # the process ends; nobody has shut down the pool
                        return
                    continue
                if call is None:
                    return
                call.run()
                call = None
        except BaseException as error:  # mostly MemoryError, from anywhere
            self._failed = True
            waiting = call
            for _ in range(FAILURE_TRIES):
                with contextlib.suppress(Exception):
                    if waiting is not None and not waiting.future.done():
                        waiting.future.set_exception(error)
                    while True:
                        waiting = self._calls.get_nowait()
                        if waiting is not None and not waiting.future.done():
                            waiting.future.set_exception(MemoryError(self._complaint))
                time.sleep(0.1)


class _Call(NamedTuple):
    """A call for a thread, and the future of its result."""

    future: Future[Any]
    function: Callable[[], Any]

    def run(self) -> None:
        """Call the function and store what it returns or raises."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.function()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class _PoolFuture(Future[R]):
    """A future that notices when nobody will ever give it a result."""

    def __init__(self, raise_if_failed: Callable[[], None]) -> None:
        super().__init__()
        self._raise_if_failed = raise_if_failed

    def result(self, timeout: float | None = None) -> R:
        """Return the result; raise what the function raised, or that the threads have died."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the function raised, if anything."""
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            seconds = POLL_SECONDS
            if end is not None:
                seconds = max(0.0, min(seconds, end - time.monotonic()))
            try:
                super().exception(seconds)
                return
            except TimeoutError:
                pass
            if end is not None and time.monotonic() >= end:
                return
            try:
                self._raise_if_failed()
            except MemoryError:
                if not self.done():
                    raise
