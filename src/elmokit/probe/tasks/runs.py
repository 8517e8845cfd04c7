"""Systems of a task, each trained with the same seeds, and their outcomes as numbers.

Knows nothing about why the systems are compared: `variants.py` and `efficiency.py` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.results import make_signature
from elmokit.probe.tasks.seeds import spread
from elmokit.tasks.comparison import mean_weights
from elmokit.tasks.settings import Settings
from elmokit.tasks.systems import canonical, make_trial, system_name
from elmokit.tasks.trials import Outcome, TaskFiles, TrialCallback, ignore_update, run_trials


def run_systems(
    systems: Sequence[Settings],
    files: TaskFiles,
    runs: str | Path,
    *,
    seeds: Sequence[int],
    jobs: int | None = None,
    callback: TrialCallback = ignore_update,
) -> list[list[Outcome]]:
    """Train each system with each seed; return the outcomes of the seeds for each system.

    Args:
        systems: Settings of the systems, which differ in more than their seeds.
        files: Training, development and test data.
        runs: Directory for the runs; runs that are in it already are not done again.
        seeds: Random seeds; each system is trained once with each of them.
        jobs: Number of runs at a time; one per core by default.
        callback: Called with each report about a run, from another thread.
    """
    if not seeds:
        raise InputError("no seed was given; expected at least one")
    # Seed by seed, so that an interrupted analysis has complete comparisons.
    trials = [make_trial(system.replace(seed=seed)) for seed in seeds for system in systems]
    outcomes = run_trials(trials, files, runs, jobs=jobs, callback=callback)
    return [outcomes[k :: len(systems)] for k in range(len(systems))]


def check_elmo(settings: Settings) -> None:
    """Raise an error for settings without ELMo."""
    if settings.baseline:
        raise InputError(
            "an analysis needs an ELMo model; name one, or leave it out for the built-in model: "
            "the baseline is always trained as well"
        )


def analysis_signature(
    settings: Settings, systems: Sequence[Settings], files: TaskFiles, seeds: Sequence[int]
) -> dict[str, Any]:
    """Return what determines the numbers of an analysis.

    Args:
        settings: The settings that the systems are variants of.
        systems: Settings of the systems.
        files: Training, development and test data.
        seeds: Random seeds.
    """
    paths: dict[str, Any] = {k: path for k, path in asdict(files).items() if path is not None}
    return make_signature(
        Elmo.load(settings.elmo),
        paths,
        settings=canonical(settings).to_full_dict(),
        systems=[system_name(system) for system in systems],
        seeds=list(seeds),
    )


def summarize(settings: Settings, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the numbers of one system as a JSON object; lists have one item per seed."""
    score = settings.definition.main_score
    scores = [outcome.main(score) for outcome in outcomes]
    return {
        "system": system_name(settings),
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
