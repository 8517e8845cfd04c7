"""How long a run lasts: so many minutes, words or epochs, counted over all its sittings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from elmokit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Budget:
    """One of the three."""

    minutes: float | None = None
    tokens: int | None = None
    """Words, and sentences' ends, that are predicted in each direction."""
    epochs: float | None = None

    def __post_init__(self) -> None:
        """Refuse none, several, and nothing."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) != 1:
            raise InputError(
                f"the budget is {', '.join(given) or 'nothing'}; "
                "expected one of minutes, tokens and epochs"
            )
        ((name, value),) = given.items()
        if not 0 < value < math.inf:
            raise InputError(f"{name} is {value}; expected a number above 0")

    def spent(self, *, seconds: float, tokens: int, epoch_tokens: int) -> float:
        """The part of it that is gone, 0 to 1."""
        if self.minutes is not None:
            part = seconds / (60 * self.minutes)
        elif self.tokens is not None:
            part = tokens / self.tokens
        else:
            part = tokens / ((self.epochs or 0) * epoch_tokens)
        return min(part, 1.0)

    @property
    def exact(self) -> bool:
        """Whether a run with it does the same again, whatever the clock says."""
        return self.minutes is None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        ((name, value),) = self.to_dict().items()
        return f"{value:,} {name}"
