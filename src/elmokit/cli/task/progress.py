"""The progress of several training runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmokit.progress import ProgressDisplay
    from elmokit.tasks.trials import TrialCallback, TrialUpdate


def show_trials(display: ProgressDisplay) -> TrialCallback:
    """Return a callback that shows one bar per run, and prints one line when a run has ended."""

    def show(update: TrialUpdate) -> None:
        display.update(update.text, update.done, 1.0, key=update.run)
        if update.ended:
            display.message(f"{update.run}: {update.text}")

    return show
