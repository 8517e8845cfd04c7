"""Adam and Adagrad over parts of one long array, each part by itself.

PyTorch's own, fused. Its state is a few arrays as long as the parameters, so that it can be kept in
a file and found again to the bit. Knows nothing about networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from elmokit.train.recipe import Recipe

BETAS = 0.9, 0.999
ADAGRAD_START = 1.0
"""As bilm-tf and TensorFlow."""

_ARRAYS = {"adam": ("exp_avg", "exp_avg_sq"), "adagrad": ("sum",)}


class Optimizer:
    """One of the two, ready for the parts of an array."""

    def __init__(self, recipe: Recipe, parts: Sequence[Tensor]) -> None:
        """The parts are changed in place."""
        self._arrays = _ARRAYS[recipe.optimizer]
        self._parts = [torch.nn.Parameter(part, requires_grad=True) for part in parts]
        self._each: list[torch.optim.Optimizer] = []
        for part in self._parts:
            if recipe.optimizer == "adam":
                self._each.append(torch.optim.Adam([part], recipe.rate, BETAS, fused=True))
            else:
                self._each.append(
                    torch.optim.Adagrad(
                        [part], recipe.rate, initial_accumulator_value=ADAGRAD_START
                    )
                )
        self._begin()

    def _begin(self) -> None:
        """Adam makes its arrays at the first step; here they are there from the beginning."""
        for part, optimizer in zip(self._parts, self._each, strict=True):
            if "exp_avg" in self._arrays:
                optimizer.state[part] = {
                    "step": torch.zeros((), device=part.device),
                    "exp_avg": torch.zeros_like(part),
                    "exp_avg_sq": torch.zeros_like(part),
                }

    def step(self, index: int, gradient: Tensor, rate: float) -> None:
        """Change one part."""
        part, optimizer = self._parts[index], self._each[index]
        part.grad = gradient
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        part.grad = None

    def state(self) -> dict[str, Tensor]:
        """Everything it remembers, by name: arrays of all parts joined, and the steps taken."""
        states = [o.state[p] for o, p in zip(self._each, self._parts, strict=True)]
        joined = {name: torch.cat([s[name].detach() for s in states]) for name in self._arrays}
        return joined | {"step": states[0]["step"].reshape(1)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """What `state` gave."""
        sizes = [part.numel() for part in self._parts]
        pieces = {name: torch.split(state[name], sizes) for name in self._arrays}
        for i, (part, optimizer) in enumerate(zip(self._parts, self._each, strict=True)):
            own = optimizer.state[part]
            own["step"].copy_(state["step"][0])
            for name in self._arrays:
                own[name].copy_(pieces[name][i])
