"""Stopping a long run between two steps, so that what it has learned can be kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def between_steps(patient: bool = False) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second has its usual effect.

    Unless `patient`: torchrun sends another to each of its processes.
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {n: handler for n, handler in handlers.items() if handler != signal.SIG_IGN}

    def stop(number: int, frame: Any) -> None:
        stopped.set()
        for each, handler in before.items() if not patient else ():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
