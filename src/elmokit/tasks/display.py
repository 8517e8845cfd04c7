"""The progress of training task models on stderr: one run, or several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elmokit.progress import ProgressDisplay, is_terminal

if TYPE_CHECKING:
    from elmokit.tasks.fitting import FitProgress
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import TrialCallback, TrialUpdate


class FitDisplay:
    """Shows the progress of `fit`: a bar for the current epoch, and one line per epoch."""

    def __init__(self, display: ProgressDisplay, settings: Settings) -> None:
        """Prepare the callbacks for a run with these settings."""
        self._display = display
        self._score = settings.definition.main_score

    def on_layers(self, done: int, total: int | None) -> None:
        """Show how many words have their layers; a `ProgressCallback`."""
        self._display.update("ELMo layers", done, total)

    def on_step(self, progress: FitProgress, batches: int) -> None:
        """Show the number of the epoch and its mean loss so far; a `StepCallback`."""
        loss = progress.loss / progress.batch
        text = f"epoch {progress.epoch + 1} of {progress.max_epochs}, loss {loss:.3f}"
        self._display.update(text, progress.batch, batches)

    def on_epoch(self, record: Mapping[str, Any]) -> None:
        """Print loss and score of an epoch; an `EpochCallback`."""
        best = "  best so far" if record["best"] else ""
        self._display.message(
            f"epoch {record['epoch']:2}  loss {record['loss']:8.4f}  "
            f"{self._score} {record['scores'][self._score]:6.2f}{best}"
        )


@contextmanager
def fit_display(settings: Settings, progress: bool | None) -> Iterator[FitDisplay | None]:
    """Give a display for one run, or None if nothing is to be shown.

    Args:
        settings: The settings of the run.
        progress: Whether to show progress; None to show it where stderr is a terminal.
    """
    if not (is_terminal() if progress is None else progress):
        yield None
        return
    with ProgressDisplay() as display:
        yield FitDisplay(display, settings)


def show_trials(display: ProgressDisplay) -> TrialCallback:
    """Return a callback that shows one bar per run, and prints one line when a run has ended."""

    def show(update: TrialUpdate) -> None:
        display.update(update.text, update.done, 1.0, key=update.run)
        if update.ended:
            display.message(f"{update.run}: {update.text}")

    return show


@contextmanager
def trials_display(callback: TrialCallback, progress: bool | None) -> Iterator[TrialCallback]:
    """Give a callback that calls the given one, and shows the runs if that is wanted.

    Args:
        callback: What to call with each report.
        progress: Whether to show progress; None to show it where stderr is a terminal.
    """
    if not (is_terminal() if progress is None else progress):
        yield callback
        return
    with ProgressDisplay() as display:
        show = show_trials(display)

        def both(update: TrialUpdate) -> None:
            show(update)
            callback(update)

        yield both
