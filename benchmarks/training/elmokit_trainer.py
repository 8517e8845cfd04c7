"""elmokit's trainer: `elmokit.train.pretrain`, as `elmo pretrain` calls it.

    python benchmarks/training/elmokit_trainer.py recommended|bilm-tf [bfloat16]

The protocol is that of trainer_worker.py.

Runs without checkpoints and evaluations, which happen at intervals of time: the other trainers make
none during a measurement either.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_worker import StepCallback, serve

if TYPE_CHECKING:
    from elmokit.train import TrainingReport

NEVER = 1e9
ENDLESS = 10**15


class ElmokitTrainer:
    """Runs `pretrain` with one of the recipes."""

    packages: tuple[str, ...] = ("torch", "numpy")

    def __init__(self) -> None:
        from elmokit.train import RECIPES, SIZES, Budget, pretrain

        self._pretrain, self._sizes = pretrain, SIZES
        name, *products = sys.argv[1:]
        self._recipe = RECIPES[name].replace(products=products[0] if products else None)
        self._budget = Budget(tokens=ENDLESS)

    def train(self, directory: Path, size: str, cores: int, on_step: StepCallback) -> None:
        """Train with one shard per core."""
        reported = 0

        def count_words(report: TrainingReport) -> None:
            nonlocal reported
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
                on_step=count_words,
            )


if __name__ == "__main__":
    serve(ElmokitTrainer)
