"""What ELMo brings: a task's model without and with it, over the same seeds and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import elmokit
from elmokit.errors import InputError
from elmokit.tasks.settings import Settings
from elmokit.tasks.systems import BASELINE, WITH_ELMO, trial_of, without_elmo
from elmokit.tasks.trials import Files, Hear, Outcome, run_trials


@dataclass(frozen=True)
class Row:
    """One system of a comparison."""

    system: str
    share: float
    """Of the training set."""
    scores: list[float]
    """The main score of each seed."""
    seconds: float
    """Of training, on average."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return mean(self.scores)

    @property
    def spread(self) -> float:
        """The standard deviation; 0 for a single seed."""
        return stdev(self.scores) if len(self.scores) > 1 else 0.0


@dataclass(frozen=True)
class Comparison:
    """Baseline and ELMo, for each share of the training set."""

    settings: Settings
    data: dict[str, str]
    """Checksums of the files."""
    biLM: str
    """Fingerprint of the model behind ELMo."""
    tested: bool
    """Whether the scores are those of a test set, not of the development set."""
    outcomes: list[tuple[float, Outcome]]
    """Each with its share."""

    @property
    def score(self) -> str:
        """The name of the score that counts."""
        return self.settings.sister.SCORE

    def row(self, system: str, share: float) -> Row:
        """A line of the table."""
        found = [
            outcome
            for part, outcome in self.outcomes
            if (part, outcome.system.partition("-")[0]) == (share, system)
        ]
        scores = [outcome.main(self.score) for outcome in found]
        return Row(system, share, scores, mean(outcome.seconds for outcome in found))

    def shares(self) -> list[float]:
        """The parts of the training set, as asked for."""
        return list(dict.fromkeys(share for share, _ in self.outcomes))

    def reduction(self, share: float) -> float:
        """The part of the baseline's error that ELMo takes away, in percent."""
        baseline, elmo = (self.row(system, share).mean for system in (BASELINE, WITH_ELMO))
        return 100 * (elmo - baseline) / max(100 - baseline, 1e-9)

    def wins(self, share: float) -> int:
        """How many seeds ELMo is better for."""
        pairs = zip(
            self.row(BASELINE, share).scores, self.row(WITH_ELMO, share).scores, strict=True
        )
        return sum(elmo > baseline for baseline, elmo in pairs)

    def weights(self) -> dict[str, dict[str, Any]]:
        """For each place, the layers' shares and γ: means over the seeds of the largest share."""
        largest = max(self.shares())
        return mean_weights(
            [outcome.weights for share, outcome in self.outcomes if share == largest]
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with all that the numbers depend on."""
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
                        for row in (self.row(system, share),)
                    },
                    "relative_error_reduction": self.reduction(share),
                }
                for share in self.shares()
            ],
            "weights": self.weights(),
            "runs": [{"share": share, **asdict(outcome)} for share, outcome in self.outcomes],
        }


def mean_weights(learned: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Over models: for each place, the layers' shares and γ. Those without any are passed over."""
    there = [weights for weights in learned if weights]
    return {
        place: {
            "shares": [
                mean(each) for each in zip(*(w[place]["shares"] for w in there), strict=True)
            ],
            "gamma": mean(w[place]["gamma"] for w in there),
        }
        for place in (there[0] if there else {})
    }


def compare(
    settings: Settings,
    files: Files,
    out: str | Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    shares: Sequence[float] = (1.0,),
    jobs: int | None = None,
    hear: Hear = lambda moment: None,
) -> Comparison:
    """Train and score both systems with each seed, for each share of the training set.

    Args:
        settings: of the runs with ELMo; the baseline has the same but for that.
        files: training, development and test data.
        out: where the runs are kept; called again, what is done is not done again.
        seeds: of the runs.
        shares: parts of the training set to compare on.
        jobs: how many runs at a time.
        hear: who looks on.
    """
    from elmokit.elmo import Elmo

    if settings.baseline:
        raise InputError(
            "a comparison needs an ELMo; name a model, or nothing for the built-in one"
        )
    biLM = Elmo.load(settings.elmo).bilm.fingerprint
    trials = [
        (share, trial_of(system.replace(seed=seed, share=share)))
        for share in shares
        for seed in seeds
        for system in (without_elmo(settings), settings)
    ]
    outcomes = run_trials([trial for _, trial in trials], files, out, jobs=jobs, hear=hear)
    placed = [(share, outcome) for (share, _), outcome in zip(trials, outcomes, strict=True)]
    return Comparison(settings, files.fingerprints(), biLM, files.test is not None, placed)
