"""The progress of `elmo corpus`, `elmo pretrain` and `elmo finetune` on stderr."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from elmokit.progress import ProgressDisplay

if TYPE_CHECKING:
    from elmokit.train.run import TrainingReport


class TrainingDisplay:
    """Shows how far reading text and training are; use it in a `with` block."""

    def __init__(self, opening: str, *, quiet: bool = False) -> None:
        """Prepare the display.

        Args:
            opening: What to show before the first report.
            quiet: Show nothing, such as in all processes of torchrun but the first.
        """
        self.quiet = quiet
        self.last: TrainingReport | None = None
        """Last report of a training step."""
        self._opening = opening
        self._display = ProgressDisplay()
        self._started = time.monotonic()

    def __enter__(self) -> TrainingDisplay:
        if not self.quiet:
            self._display.__enter__()
            self._display.update(self._opening, 0)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.quiet:
            self._display.__exit__()

    def on_chunk(self, position: int, size: int | None, words: int) -> None:
        """Show how much text was read; a `CorpusCallback`."""
        speed = words / max(time.monotonic() - self._started, 1e-9)
        self._display.update(f"{words:,} words read, {speed:,.0f} words/s", position, size)

    def on_step(self, report: TrainingReport) -> None:
        """Show how far the training is; a `StepCallback`."""
        self.last = report
        if not self.quiet:
            self._display.update(describe_report(report), report.spent, 1.0)


@contextmanager
def warnings_at_the_end() -> Iterator[None]:
    """Print the warnings of the `with` block when it ends, so that advice follows the results."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as recorded:
            caught = recorded
            yield
    finally:
        for each in caught:
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)


def describe_report(report: TrainingReport) -> str:
    """Return the numbers of a training report in one line."""
    from elmokit.figures.axes import format_count

    parts = [
        f"{format_count(report.progress.tokens)} words",
        f"{report.words_per_second:,.0f} words/s",
        f"loss {report.loss:.2f}",
    ]
    if report.held_out is not None:
        forward, backward = report.held_out.forward, report.held_out.backward
        parts.append(f"held-out perplexity forward/backward {forward:.1f}/{backward:.1f}")
    return ", ".join(parts)


def describe_stop(out: Path) -> str:
    """Return what is kept of a run that a signal of a scheduler has stopped, in one line."""
    from elmokit.train import checkpoint
    from elmokit.train.run import CHECKPOINTS
    from elmokit.train.run_plan import TRAINING

    newest = checkpoint.find_newest(out / TRAINING / CHECKPOINTS)
    kept = "before the first step" if newest is None else f"{newest.name} is kept"
    return (
        f"stopped by a signal, {kept}; to continue, give the same command with --auto-resume, or "
        "with --resume"
    )


def format_duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds, such as `1:02:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
