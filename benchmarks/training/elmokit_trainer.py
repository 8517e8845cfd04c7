"""elmokit's trainer: `elmokit.train.pretraining`, as `elmo pretrain` calls it.

    python benchmarks/training/elmokit_trainer.py recommended|bilm-tf   (see trainer_worker.py)

Runs without checkpoints and evaluations, which happen at intervals of time: the other trainers make
none during a measurement either.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from trainer_worker import StepCallback, serve

NEVER = 1e9
ENDLESS = 10**15


class ElmokitTrainer:
    """Runs `pretrain` with one of the recipes."""

    packages: tuple[str, ...] = ("torch", "numpy")

    def __init__(self) -> None:
        from elmokit.bilm.sizes import SIZES
        from elmokit.train.budget import Budget
        from elmokit.train.pretraining import pretrain
        from elmokit.train.recipe import get_recipe
        from elmokit.train.run import TrainingReport

        self._pretrain, self._sizes, self._report = pretrain, SIZES, TrainingReport
        self._recipe, self._budget = get_recipe(sys.argv[1]), Budget(tokens=ENDLESS)

    def train(self, directory: Path, size: str, cores: int, on_step: StepCallback) -> None:
        """Train with one shard per core."""
        reported = 0

        def watch(report: object) -> None:
            nonlocal reported
            assert isinstance(report, self._report)
            on_step(report.progress.tokens - reported)
            reported = report.progress.tokens

        on_step(0)
        with tempfile.TemporaryDirectory() as out:
            self._pretrain(
                directory,
                Path(out) / "run",
                config=self._sizes[size],
                recipe=self._recipe.replace(shards=cores),
                budget=self._budget,
                checkpoint_minutes=NEVER,
                watch=watch,
            )


if __name__ == "__main__":
    serve(ElmokitTrainer)
