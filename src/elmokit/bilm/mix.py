"""The weighted sum of the layers of a biLM: ELMo = γ · Σ_j softmax(s)_j · h_j.

A `Mix` holds fixed weights and applies them with NumPy; `elmokit.nn` has modules that learn them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elmokit.bilm.arrays import empty_array
from elmokit.bilm.weights import FloatArray
from elmokit.errors import ConfigError

PIECE = 1 << 16
"""Numbers that are mixed together: a bound on temporary memory."""


@dataclass(frozen=True)
class Mix:
    """Weights that combine the layers of a biLM into one vector per word."""

    scalars: tuple[float, ...]
    """One number s_j per layer, before the softmax."""
    gamma: float = 1.0
    """Scale γ of the weighted sum."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` unless all values are finite numbers."""
        try:
            object.__setattr__(self, "scalars", tuple(float(s) for s in self.scalars))
            object.__setattr__(self, "gamma", float(self.gamma))
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(
                f"the scalars of a mix are {self.scalars!r:.80} and its gamma is "
                f"{self.gamma!r:.80}; expected one number per layer and one number"
            ) from None
        if not self.scalars or not all(map(math.isfinite, (*self.scalars, self.gamma))):
            raise ConfigError(
                f"the scalars of a mix are {self.scalars} and its gamma is {self.gamma}; "
                "expected finite numbers"
            )

    @classmethod
    def uniform(cls, layers: int) -> Mix:
        """Return the plain average of this many layers: equal weights, γ = 1."""
        return cls((0.0,) * layers)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weight of each layer, softmax(s); they sum to 1."""
        largest = max(self.scalars)
        powers = [math.exp(s - largest) for s in self.scalars]
        return tuple(power / sum(powers) for power in powers)

    def apply(self, layers: FloatArray) -> FloatArray:
        """Return the weighted sum over the first axis: (L+1, …) to (…)."""
        shares = np.array([self.gamma * share for share in self.weights], np.float32)
        mixed: FloatArray = empty_array(layers.shape[1:])
        flat = layers.reshape(len(layers), -1)
        target = mixed.reshape(-1)
        for start in range(0, target.size, PIECE):  # small enough for the cache
            piece, out = flat[:, start : start + PIECE], target[start : start + PIECE]
            np.multiply(piece[0], shares[0], out=out)
            for share, layer in zip(shares[1:], piece[1:], strict=True):
                out += layer * share
        return mixed
