"""Systems of a task, each trained with the same seeds, and what came of them as numbers.

Knows nothing about why the systems are compared: that is for `choices.py` and `efficiency.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.results import Json
from elmokit.probe.tasks.seeds import spread
from elmokit.tasks.comparison import mean_weights
from elmokit.tasks.settings import Settings
from elmokit.tasks.systems import system_of, trial_of, usual
from elmokit.tasks.trials import Files, Hear, Outcome, run_trials


def run_systems(
    systems: Sequence[Settings],
    files: Files,
    runs: str | Path,
    *,
    seeds: Sequence[int],
    jobs: int | None = None,
    hear: Hear = lambda moment: None,
) -> list[list[Outcome]]:
    """Train each system with each seed; for each system, what came of its seeds.

    Args:
        systems: settings that differ in more than their seeds.
        files: training, development and test data.
        runs: where the runs are kept; what is there already is not trained again.
        seeds: of the runs.
        jobs: how many runs at a time.
        hear: who looks on.
    """
    if not seeds:
        raise InputError("no seed was given; expected at least one")
    # Seed by seed, so that what was interrupted has whole comparisons.
    trials = [trial_of(system.replace(seed=seed)) for seed in seeds for system in systems]
    outcomes = run_trials(trials, files, runs, jobs=jobs, hear=hear)
    return [outcomes[k :: len(systems)] for k in range(len(systems))]


def check_elmo(settings: Settings) -> None:
    """An analysis of ELMo needs one."""
    if settings.baseline:
        raise InputError(
            "an analysis needs an ELMo; name a model, or nothing for the built-in one: the "
            "baseline is trained beside it"
        )


def signature(
    settings: Settings, systems: Sequence[Settings], files: Files, seeds: Sequence[int]
) -> Json:
    """What determines the numbers; `settings` are those that the systems differ from."""
    paths: dict[str, Any] = {k: path for k, path in asdict(files).items() if path is not None}
    return results.signature(
        Elmo.load(settings.elmo),
        paths,
        settings=usual(settings).determined(),
        systems=[system_of(system) for system in systems],
        seeds=list(seeds),
    )


def summary(settings: Settings, outcomes: Sequence[Outcome]) -> Json:
    """The numbers of one system; lists have a number for each seed."""
    score = settings.sister.SCORE
    scores = [outcome.main(score) for outcome in outcomes]
    return {
        "system": system_of(settings),
        "examples": outcomes[0].examples,
        "scores": scores,
        "mean": mean(scores),
        "spread": spread(scores),
        "dev": [outcome.dev[score] for outcome in outcomes],
        "curves": [outcome.curve for outcome in outcomes],
        "best_epochs": [outcome.best_epoch for outcome in outcomes],
        "seconds": mean(outcome.seconds for outcome in outcomes),
        "weights": mean_weights([outcome.weights for outcome in outcomes]),
    }
