"""Progress of long work: what functions report, and the one display of it.

Functions take a callback and know nothing about terminals. `ProgressDisplay` shows bars on stderr
where that is a terminal, and prints a line now and then where it is not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import TaskID

ProgressCallback = Callable[[int, int | None], None]
"""Called with how much is done, and how much there is in all if that is known."""

StageCallback = Callable[[str, int, int | None], None]
"""Called with the stage of the work, how much of it is done, and how much there is if known.

`ProgressDisplay.update` is one.
"""

LINE_SECONDS = 30.0
"""Time between two lines of the same work where stderr is not a terminal."""


def ignore_progress(done: int, total: int | None) -> None:
    """Accept a report and do nothing: the default of functions that report progress."""


def ignore_stages(stage: str, done: int, total: int | None) -> None:
    """Accept a report and do nothing: the default of functions that report stages."""


def is_terminal() -> bool:
    """Return whether stderr is a terminal, so that somebody may be watching."""
    return sys.stderr.isatty()


class ProgressDisplay:
    """One or more progress bars on stderr; without a terminal, a line every 30 seconds.

    Use it in a `with` block. Each `key` is a bar of its own; the bars disappear at the end.
    """

    def __init__(self, *, lines: bool = True, keep: bool = False, binary: bool = False) -> None:
        """Prepare the display.

        Args:
            lines: Print a line now and then where stderr is not a terminal.
            keep: Leave the bars on the terminal at the end.
            binary: Amounts are bytes; show them and the transfer speed.
        """
        self._terminal, self._lines = is_terminal(), lines
        self._keep, self._binary = keep, binary
        self._bars: Any = None
        self._tasks: dict[str, TaskID] = {}
        self._printed: dict[str, float] = {}
        self._started: dict[tuple[str, float | None], tuple[float, float]] = {}

    def __enter__(self) -> ProgressDisplay:
        if self._terminal:
            self._bars = self._make_bars()
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, text: str, done: float, total: float | None = None, *, key: str = "") -> None:
        """Show how far the work is.

        Args:
            text: What is being done, with the numbers that matter.
            done: How much is done, in any unit.
            total: How much there is in all; None while it is unknown.
            key: Which bar, where several kinds of work go on at once.
        """
        if self._bars is not None:
            if key not in self._tasks:
                self._tasks[key] = self._bars.add_task("", total=total, key=key, text=text)
            self._bars.update(self._tasks[key], completed=done, total=total, text=text)
            return
        now = time.monotonic()
        started, first = self._started.setdefault((key, total), (now, done))
        if self._lines and now - self._printed.setdefault(key, now) >= LINE_SECONDS:
            self._printed[key] = now
            left = _time_left(now - started, done - first, done, total)
            if self._binary:
                text = f"{text}{' ' * bool(text)}{_megabytes(done, total)}"
            self.message(f"{_fraction(done, total)}{f'{key}: ' if key else ''}{text}{left}")

    def message(self, text: str) -> None:
        """Print a line that stays, above the bars."""
        if self._bars is not None:
            self._bars.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def counter(self, text: str, *, key: str = "") -> ProgressCallback:
        """Return a callback that shows counts under this text."""
        return lambda done, total: self.update(text, done, total, key=key)

    def _make_bars(self) -> Any:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        amounts: list[ProgressColumn] = (
            [DownloadColumn(), TransferSpeedColumn()] if self._binary else [TaskProgressColumn()]
        )
        return Progress(
            TextColumn("{task.fields[key]}"),
            BarColumn(bar_width=20),
            *amounts,
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=not self._keep,
        )


def _fraction(done: float, total: float | None) -> str:
    return f"{min(done / total, 1.0):6.1%}  " if total else ""


def _megabytes(done: float, total: float | None) -> str:
    return f"{done / 1e6:,.1f} {f'of {total / 1e6:,.1f} ' if total else ''}MB"


def _time_left(seconds: float, gained: float, done: float, total: float | None) -> str:
    """Return the time left, where it can be estimated from the time since the first update."""
    if not total or gained <= 0:
        return ""
    minutes, rest = divmod(round(max(total - done, 0) * seconds / gained), 60)
    hours, minutes = divmod(minutes, 60)
    return f", {hours}:{minutes:02d}:{rest:02d} left"
