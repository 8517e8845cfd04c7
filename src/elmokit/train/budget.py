"""Training budgets: how long a run lasts, in minutes, tokens or epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from elmokit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to train: exactly one of `minutes`, `tokens` and `epochs`.

    A run that is stopped and resumed counts the time and text of all its sessions.
    """

    minutes: float | None = None
    """Minutes of training time, without evaluations and checkpoints."""
    tokens: int | None = None
    """Predictions in each direction: words and ends of sentences."""
    epochs: float | None = None
    """Passes over the training text."""

    def __post_init__(self) -> None:
        limits = self.to_dict()
        if len(limits) != 1:
            raise InputError(
                f"the budget sets {', '.join(limits) or 'nothing'}; "
                "expected exactly one of minutes, tokens and epochs"
            )
        ((unit, amount),) = limits.items()
        if not 0 < amount < math.inf:
            raise InputError(f"{unit} is {amount}; expected a number above 0")

    def spent(self, *, seconds: float, tokens: int, epoch_tokens: int) -> float:
        """Return the fraction of the budget that is spent, from 0 to 1.

        Args:
            seconds: Training time so far.
            tokens: Predictions so far, in each direction.
            epoch_tokens: Predictions per epoch, in each direction.
        """
        if self.minutes is not None:
            fraction = seconds / (60 * self.minutes)
        elif self.tokens is not None:
            fraction = tokens / self.tokens
        else:
            fraction = tokens / ((self.epochs or 0) * epoch_tokens)
        return min(fraction, 1.0)

    def scaled(self, factor: float) -> Budget:
        """Return a budget of the same unit, `factor` times as large."""
        ((unit, amount),) = self.to_dict().items()
        scaled = amount * factor
        return Budget(**{unit: max(1, round(scaled)) if unit == "tokens" else scaled})

    def to_dict(self) -> dict[str, Any]:
        """Return the unit and the amount as a dictionary for JSON."""
        return {unit: amount for unit, amount in vars(self).items() if amount is not None}
