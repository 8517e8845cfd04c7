"""Ctrl-C and SIGTERM that wait for the end of a training step, so that nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def defer_interrupts(*, repeatedly: bool = False) -> Iterator[threading.Event]:
    """Set an event at the first Ctrl-C or SIGTERM instead of interrupting.

    Outside the main thread, which cannot handle signals, the event is never set.

    Args:
        repeatedly: Defer all signals, not only the first. torchrun needs it, since it sends a
            signal of its own to each of its processes.
    """
    stop_requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop_requested
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    previous = {n: handler for n, handler in handlers.items() if handler != signal.SIG_IGN}

    def restore_handlers() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def request_stop(number: int, frame: Any) -> None:
        stop_requested.set()
        if not repeatedly:
            restore_handlers()

    for number in previous:
        signal.signal(number, request_stop)
    try:
        yield stop_requested
    finally:
        restore_handlers()
