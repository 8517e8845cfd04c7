"""Early stopping: the best weights so far, by the perplexity of held-out text.

The best weights are the result of a run, whether its budget is spent, nothing has improved for a
while, or somebody has pressed Ctrl-C. Knows nothing about runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torch import Tensor

from elmokit.lm import Perplexity


class EarlyStopping:
    """Keeps the best weights of a run, and counts evaluations without improvement."""

    def __init__(self, patience: int) -> None:
        """Stop after `patience` evaluations without improvement."""
        self.patience = patience
        """Evaluations without improvement after which to stop."""
        self.initial: Perplexity | None = None
        """First perplexity, before any training."""
        self.best: Perplexity | None = None
        """Lowest perplexity so far."""
        self.best_step = 0
        """Step of the lowest perplexity."""
        self.best_parameters: Tensor | None = None
        """Parameters at that step."""
        self.evaluated_step = -1
        """Step of the last evaluation, or -1."""
        self._without_improvement = 0

    @property
    def exhausted(self) -> bool:
        """Whether nothing has improved for as many evaluations as patience allows."""
        return self._without_improvement >= self.patience

    def update(self, step: int, perplexity: Perplexity, parameters: Tensor) -> None:
        """Take note of an evaluation; the parameters are copied if it is the best so far."""
        self.evaluated_step = step
        self.initial = self.initial or perplexity
        if self.best is None or perplexity.mean < self.best.mean:
            self.best, self.best_step, self._without_improvement = perplexity, step, 0
            self.best_parameters = parameters.detach().clone()
        else:
            self._without_improvement += 1

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the arrays and the values that a checkpoint holds; none before an evaluation."""
        if self.best is None or self.initial is None or self.best_parameters is None:
            return {}, {}
        values = {
            "before": asdict(self.initial),
            "best": asdict(self.best),
            "best_step": self.best_step,
            "waited": self._without_improvement,
            "measured": self.evaluated_step,
        }
        return {"best": self.best_parameters}, values

    def load(self, arrays: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore what `state` returned, if the checkpoint has it."""
        if "best" not in arrays:
            return
        self.best_parameters = arrays["best"]
        self.initial, self.best = Perplexity(**values["before"]), Perplexity(**values["best"])
        self.best_step, self._without_improvement = values["best_step"], values["waited"]
        self.evaluated_step = values["measured"]
