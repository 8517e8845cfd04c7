"""elmokit's trainer: `elmokit.train.pretraining`, as `elmo pretrain` calls it.

    python benchmarks/training/ours.py recommended|bilm-tf      (see trainer.py)

Without checkpoints and evaluations, which come by the clock: the peers make none within a
measurement either.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from trainer import Between, serve

NEVER = 1e9
ENDLESS = 10**15


class Ours:
    """Drives `pretrain` with one of the recipes."""

    packages: tuple[str, ...] = ("torch", "numpy")

    def __init__(self) -> None:
        from elmokit.bilm.sizes import SIZES
        from elmokit.train.budget import Budget
        from elmokit.train.pretraining import pretrain
        from elmokit.train.recipe import recipe_named
        from elmokit.train.run import Report

        self._pretrain, self._sizes, self._report = pretrain, SIZES, Report
        self._recipe, self._budget = recipe_named(sys.argv[1]), Budget(tokens=ENDLESS)

    def train(self, directory: Path, size: str, cores: int, between: Between) -> None:
        """One shard a core."""
        known = 0

        def watch(report: object) -> None:
            nonlocal known
            assert isinstance(report, self._report)
            between(report.progress.tokens - known)
            known = report.progress.tokens

        between(0)
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
    serve(Ours)
