"""Progress bars, on stderr and only where somebody looks; rich is imported when one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def words_bar(*more: ProgressColumn) -> Progress:
    """For text that is read: the fields of a task are `words` and `speed`, and those of `more`."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[words]:,} words, {task.fields[speed]:,.0f}/s"),
        *more,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def time_columns() -> list[ProgressColumn]:
    """How long it has taken, and how long it will."""
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return [TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()]


def told_bar(disable: bool) -> Progress:
    """As wide as the terminal, with a line of text: the field `told` of a task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    return Progress(
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        console=Console(stderr=True),
        transient=True,
        expand=True,
        disable=disable,
    )


def watched() -> bool:
    """Whether stderr is a terminal."""
    from rich.console import Console

    return Console(stderr=True).is_terminal


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A plain bar; call what it gives with how much of how much is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, of: bar.update(task, completed=done, total=of)
