"""What ELMo contributes: a task's model without and with it, with the same seeds and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import elmokit
from elmokit.errors import InputError
from elmokit.tasks.display import trials_display
from elmokit.tasks.settings import Settings
from elmokit.tasks.systems import BASELINE, WITH_ELMO, make_trial, without_elmo
from elmokit.tasks.trials import Outcome, TaskFiles, TrialCallback, ignore_update, run_trials


@dataclass(frozen=True)
class SystemScores:
    """The scores of one system of a comparison."""

    system: str
    """`"baseline"` or `"elmo"`."""
    share: float
    """Fraction of the training set that was used."""
    scores: list[float]
    """Main score of each seed."""
    seconds: float
    """Mean training time."""

    @property
    def mean(self) -> float:
        """Mean score over the seeds."""
        return mean(self.scores)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; 0 for a single seed."""
        return stdev(self.scores) if len(self.scores) > 1 else 0.0


@dataclass(frozen=True)
class Comparison:
    """The baseline and the model with ELMo, for each share of the training set."""

    settings: Settings
    """Settings of the runs with ELMo."""
    data: dict[str, str]
    """Checksums of the data files."""
    biLM: str
    """Fingerprint of the biLM."""
    tested: bool
    """Whether the scores are those of a test set, not of the development set."""
    outcomes: list[tuple[float, Outcome]]
    """Outcome of each run, with its share of the training set."""

    @property
    def score(self) -> str:
        """Name of the main score."""
        return self.settings.definition.main_score

    def system_scores(self, system: str, share: float) -> SystemScores:
        """Return the scores of a system with a share of the training set."""
        outcomes = [
            outcome
            for part, outcome in self.outcomes
            if (part, outcome.system.partition("-")[0]) == (share, system)
        ]
        scores = [outcome.main(self.score) for outcome in outcomes]
        return SystemScores(system, share, scores, mean(outcome.seconds for outcome in outcomes))

    def shares(self) -> list[float]:
        """Return the shares of the training set that were compared."""
        return list(dict.fromkeys(share for share, _ in self.outcomes))

    def error_reduction(self, share: float) -> float:
        """Return the part of the baseline's error that ELMo removes, in percent."""
        baseline, elmo = (self.system_scores(name, share).mean for name in (BASELINE, WITH_ELMO))
        return 100 * (elmo - baseline) / max(100 - baseline, 1e-9)

    def wins(self, share: float) -> int:
        """Return the number of seeds with which ELMo is better."""
        pairs = zip(
            self.system_scores(BASELINE, share).scores,
            self.system_scores(WITH_ELMO, share).scores,
            strict=True,
        )
        return sum(elmo > baseline for baseline, elmo in pairs)

    def weights(self) -> dict[str, dict[str, Any]]:
        """Return the mean layer weights and γ of each place, for the largest share."""
        largest = max(self.shares())
        return mean_weights(
            [outcome.weights for share, outcome in self.outcomes if share == largest]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a JSON object, with everything that the numbers depend on."""
        return {
            "elmokit": elmokit.__version__,
            "settings": self.settings.to_dict(),
            "biLM": self.biLM,
            "data": self.data,
            "score": self.score,
            "of": "test" if self.tested else "dev",
            "rows": [
                {
                    "share": share,
                    **{
                        system: {**asdict(row), "mean": row.mean, "spread": row.spread}
                        for system in (BASELINE, WITH_ELMO)
                        for row in (self.system_scores(system, share),)
                    },
                    "relative_error_reduction": self.error_reduction(share),
                }
                for share in self.shares()
            ],
            "weights": self.weights(),
            "runs": [{"share": share, **asdict(outcome)} for share, outcome in self.outcomes],
        }


def mean_weights(weights: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the mean layer weights and γ of each place over several models.

    Models without layer weights do not count.
    """
    learned = [each for each in weights if each]
    return {
        place: {
            "shares": [
                mean(each) for each in zip(*(w[place]["shares"] for w in learned), strict=True)
            ],
            "gamma": mean(w[place]["gamma"] for w in learned),
        }
        for place in (learned[0] if learned else {})
    }


def compare(
    settings: Settings,
    files: TaskFiles,
    out: str | Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    shares: Sequence[float] = (1.0,),
    jobs: int | None = None,
    progress: bool | None = None,
    callback: TrialCallback = ignore_update,
) -> Comparison:
    """Train and score a task's model without and with ELMo, and return the comparison.

    The command `elmo task compare` does this.

    Args:
        settings: Settings of the runs with ELMo; the baseline has the same, without ELMo.
        files: Training, development and test data.
        out: Directory for the runs; runs that are in it already are not done again.
        seeds: Random seeds; each system is trained once with each of them.
        shares: Fractions of the training set to compare on.
        jobs: Number of runs at a time; one per core by default.
        progress: Show progress on stderr: bars on a terminal, a line now and then elsewhere. By
            default it is shown where stderr is a terminal.
        callback: Called with each report about a run, from another thread.
    """
    from elmokit.elmo import Elmo

    if settings.baseline:
        raise InputError(
            "a comparison needs an ELMo model; name one, or leave it out for the built-in model"
        )
    biLM = Elmo.load(settings.elmo).bilm.fingerprint
    trials = [
        (share, make_trial(system.replace(seed=seed, share=share)))
        for share in shares
        for seed in seeds
        for system in (without_elmo(settings), settings)
    ]
    with trials_display(callback, progress) as report:
        outcomes = run_trials([t for _, t in trials], files, out, jobs=jobs, callback=report)
    by_share = [(share, outcome) for (share, _), outcome in zip(trials, outcomes, strict=True)]
    return Comparison(settings, files.fingerprints(), biLM, files.test is not None, by_share)
