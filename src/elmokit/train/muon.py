"""Muon: momentum whose update of a matrix is made orthogonal (Jordan et al. 2024).

A gradient of an LSTM's matrix is dominated by few directions. Muon replaces the momentum U S Vᵀ by
about U Vᵀ, so that all directions are learned at the same pace, by a few steps of a Newton–Schulz
iteration, which needs matrix products only. The update is scaled to the size of Adam's, so that
both take the same learning rates (Liu et al. 2025, "Muon is scalable for LLM training").

The iteration may be computed in bfloat16, as its authors do: it only has to bring singular values
near 1. Momentum and parameters stay in float32. Each matrix is computed by one thread, so the
number of threads does not change a bit. Knows nothing about networks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from elmokit.nn.products import kernel_multiplies, multiply

MOMENTUM = 0.95
"""Decay rate of the running mean of gradients."""
ITERATIONS = 5
"""Steps of the Newton–Schulz iteration."""
ADAM_SIZE = 0.2
"""Root mean square of an update of Adam, relative to its learning rate."""

_COEFFICIENTS = 3.4445, -4.7750, 2.0315  # singular values of 0.01 to 1 go to 0.7 to 1.2
_TINY = 1e-7  # keeps a gradient of zeros from being divided by zero


class LearnedMatrix(NamedTuple):
    """A matrix to learn and the place of its gradient; both may be views of a larger array."""

    values: Tensor
    gradient: Tensor


class Muon:
    """The momentum of some matrices, and the step that updates each."""

    def __init__(
        self, matrices: Sequence[LearnedMatrix], dtype: torch.dtype = torch.float32
    ) -> None:
        """Start with a momentum of zeros.

        Args:
            matrices: The matrices to learn.
            dtype: Type of the numbers in which updates are made orthogonal.
        """
        self._matrices, self._dtype = list(matrices), dtype
        self._momenta = [m.values.new_zeros(m.values.shape) for m in matrices]

    def __len__(self) -> int:
        return len(self._matrices)

    def step(self, index: int, scale: float, rate: float) -> None:
        """Update one matrix, and set its gradient to zero.

        Args:
            index: Number of the matrix; different ones may be updated in parallel.
            scale: Factor of the gradient.
            rate: Learning rate.
        """
        values, gradient = self._matrices[index]
        momentum = self._momenta[index]
        scaled = gradient * scale
        momentum.lerp_(scaled, 1 - MOMENTUM)
        ahead = torch.lerp(scaled, momentum, MOMENTUM)  # Nesterov's
        size = ADAM_SIZE * math.sqrt(max(values.shape))
        values.sub_(orthogonalize(ahead, self._dtype), alpha=rate * size)
        gradient.zero_()

    def state(self) -> Tensor:
        """Return the momenta of all matrices, one after another."""
        return torch.cat([momentum.reshape(-1) for momentum in self._momenta])

    def load(self, state: Tensor) -> None:
        """Restore what `state` returned."""
        sizes = [momentum.numel() for momentum in self._momenta]
        for momentum, part in zip(self._momenta, torch.split(state, sizes), strict=True):
            momentum.copy_(part.view_as(momentum))


def orthogonalize(matrix: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a matrix with the same singular vectors, whose singular values are all near 1.

    Args:
        matrix: The matrix, in float32, as the result is.
        dtype: Type of the numbers to compute with.
    """
    a, b, c = _COEFFICIENTS
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.t() if is_tall else matrix).contiguous()
    x = (x / (x.norm() + _TINY)).to(dtype)
    for _ in range(ITERATIONS):
        gram = multiply(x, x.t())
        x = _sum(a, x, 1, _sum(b, gram, c, gram, gram), x)
    return (x.t() if is_tall else x).float()


def _sum(alpha: float, x: Tensor, beta: float, y: Tensor, z: Tensor) -> Tensor:
    """Return alpha·x + beta·y·z."""
    if kernel_multiplies(y, z):
        return multiply(y, z).mul_(beta).add_(x, alpha=alpha)
    return torch.addmm(x, y, z, beta=alpha, alpha=beta)
