"""Signals that wait for the end of a step."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from elmokit.train.interrupt import defer_interrupts


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    """Whoever runs the tests in the background may have SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_signal_sets_the_event_and_the_second_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt), defer_interrupts() as stop_requested:
        assert not stop_requested.is_set()
        interrupt()
        assert stop_requested.is_set()
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_all_signals_are_deferred_if_asked_for() -> None:
    with defer_interrupts(repeatedly=True) as stop_requested:
        interrupt()
        interrupt()
        assert stop_requested.is_set()
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_outside_the_main_thread_nothing_is_deferred() -> None:
    def work() -> bool:
        with defer_interrupts() as stop_requested:
            return stop_requested.is_set()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(work).result() is False
