"""How many runs side by side are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmokit.tasks.trials import Moment


class Watching:
    """A bar for each run on a terminal; elsewhere a line when one has ended."""

    def __init__(self) -> None:
        """To stderr."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.fields[run]}"),
            BarColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Watching:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def hear(self, moment: Moment) -> None:
        """A run has something to say."""
        if moment.run not in self._tasks:
            self._tasks[moment.run] = self._bars.add_task("", total=1.0, run=moment.run)
        self._bars.update(self._tasks[moment.run], completed=moment.done, description=moment.text)
        if moment.ended and not self._console.is_terminal:
            self._console.print(f"{moment.run}: {moment.text}")
