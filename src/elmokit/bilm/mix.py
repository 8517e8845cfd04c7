"""How the layers of a biLM become one vector: ELMo = γ · Σ_j softmax(s)_j · h_j.

The numbers only; `nn/` learns them, the engine applies them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.errors import ConfigError


@dataclass(frozen=True)
class Mix:
    """The scalars s_j, one a layer, before the softmax, and the scale γ of the whole."""

    scalars: tuple[float, ...]
    gamma: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no number."""
        try:
            object.__setattr__(self, "scalars", tuple(float(s) for s in self.scalars))
            object.__setattr__(self, "gamma", float(self.gamma))
        except (TypeError, ValueError):
            raise ConfigError(
                f"a mix has one number a layer and a scale; found {self.scalars!r}, {self.gamma!r}"
            ) from None
        if not self.scalars or not all(map(math.isfinite, (*self.scalars, self.gamma))):
            raise ConfigError(f"a mix needs finite numbers; found {self.scalars}, {self.gamma}")

    @classmethod
    def uniform(cls, layers: int) -> Mix:
        """The plain average: all layers count the same, γ = 1."""
        return cls((0.0,) * layers)

    @property
    def weights(self) -> tuple[float, ...]:
        """The share of each layer: softmax(s), summing to 1."""
        largest = max(self.scalars)
        powers = [math.exp(s - largest) for s in self.scalars]
        return tuple(power / sum(powers) for power in powers)

    def apply(self, layers: FloatArray) -> FloatArray:
        """Mix over the first axis: (L+1, …) to (…)."""
        shares = np.array([self.gamma * share for share in self.weights], np.float32)
        mixed: FloatArray = shares[0] * layers[0]
        product = np.empty_like(mixed)
        for share, layer in zip(shares[1:], layers[1:], strict=True):
            mixed += np.multiply(layer, share, out=product)
        return mixed
