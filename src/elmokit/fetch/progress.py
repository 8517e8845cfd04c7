"""How far a download is: a function that is told, or a bar on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Report = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes that are there, and the bytes it will have if known."""
Progress = Report | Literal["auto"] | None
"""`"auto"` is a bar on stderr where stderr is a terminal, and silence elsewhere."""


@contextmanager
def reporting(progress: Progress) -> Iterator[Report]:
    """The function to tell; a bar is taken off the terminal at the end."""
    if callable(progress):
        yield progress
    elif progress == "auto" and sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield lambda name, done, total: None


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)

        yield report
