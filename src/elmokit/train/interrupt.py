"""Signals that wait for the end of a training step, so that nothing is lost.

Ctrl-C is for people: training stops, and the command ends with 130. SIGTERM and SIGUSR1 come from
schedulers such as SLURM, which start the same command again: training stops with
`TrainingStopped`, and the command ends with 0.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SCHEDULER_SIGNALS: tuple[int, ...] = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)
)
"""Signals by which a scheduler asks a job to stop, so that it can be started again."""


class TrainingStopped(KeyboardInterrupt):
    """Training was stopped by SIGTERM or SIGUSR1, with a checkpoint to continue from."""


class StopRequest(threading.Event):
    """An event that is set when a signal arrives, with the reason to stop."""

    from_scheduler = False
    """Whether the signal was one of `SCHEDULER_SIGNALS`."""

    @property
    def level(self) -> int:
        """0 if there was no signal, 1 after Ctrl-C, 2 after a signal of a scheduler."""
        return int(self.is_set()) + int(self.from_scheduler)


def raise_stop(level: int) -> None:
    """Raise what a `StopRequest.level` asks for; return if it is 0."""
    if level:
        raise TrainingStopped if level == 2 else KeyboardInterrupt


@contextmanager
def defer_interrupts(*, repeatedly: bool = False) -> Iterator[StopRequest]:
    """Set an event at Ctrl-C, SIGTERM or SIGUSR1 instead of interrupting.

    A second Ctrl-C interrupts at once. Outside the main thread, which cannot handle signals, the
    event is never set.

    Args:
        repeatedly: Defer every Ctrl-C, not only the first. torchrun needs it, since it sends a
            signal of its own to each of its processes.
    """
    request = StopRequest()

    def request_stop(number: int, frame: Any) -> None:
        request.from_scheduler = request.from_scheduler or number in SCHEDULER_SIGNALS
        request.set()
        if number == signal.SIGINT and not repeatedly:
            signal.signal(number, previous[number])

    with _handlers(request_stop, (signal.SIGINT, *SCHEDULER_SIGNALS)) as previous:
        yield request


@contextmanager
def stop_on_scheduler_signals() -> Iterator[None]:
    """Raise `TrainingStopped` at once when SIGTERM or SIGUSR1 arrives during the block.

    For work around the training steps, which is simply done again. Does nothing outside the main
    thread.
    """

    def stop(number: int, frame: Any) -> None:
        raise TrainingStopped

    with _handlers(stop, SCHEDULER_SIGNALS):
        yield


@contextmanager
def _handlers(handler: Any, numbers: tuple[int, ...]) -> Iterator[dict[int, Any]]:
    """Set the handler of some signals during the block; yield their handlers before it.

    Signals that are ignored stay ignored.
    """
    previous: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in numbers}
        previous = {n: old for n, old in handlers.items() if old != signal.SIG_IGN}
    for number in previous:
        signal.signal(number, handler)
    try:
        yield previous
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
