"""Adam and Adagrad over a partitioned array of parameters; the part of Muon that is Adam.

PyTorch's optimizers do the work, one per part, so that parts can be updated in parallel. Their
state is a few arrays as long as the parameters, which a checkpoint restores to the bit. Knows
nothing about networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from elmokit.train.recipe import Recipe

BETAS = 0.9, 0.999
"""Decay rates of Adam's running means."""
ADAGRAD_START = 1.0
"""Initial accumulator of Adagrad, as in bilm-tf and TensorFlow."""

_ADAM_ARRAYS = "exp_avg", "exp_avg_sq"
_STATE_ARRAYS = {"adam": _ADAM_ARRAYS, "muon": _ADAM_ARRAYS, "adagrad": ("sum",)}


class PartitionedOptimizer:
    """The optimizer of a recipe for the parts of one array."""

    def __init__(self, recipe: Recipe, parts: Sequence[Tensor]) -> None:
        """Make an optimizer for each part; steps change the parts in place."""
        self._arrays = _STATE_ARRAYS[recipe.optimizer]
        self._parts = [torch.nn.Parameter(part, requires_grad=True) for part in parts]
        self._optimizers: list[torch.optim.Optimizer] = []
        for part in self._parts:
            if self._arrays == _ADAM_ARRAYS:
                self._optimizers.append(torch.optim.Adam([part], recipe.rate, BETAS, fused=True))
            else:
                self._optimizers.append(
                    torch.optim.Adagrad(
                        [part], recipe.rate, initial_accumulator_value=ADAGRAD_START
                    )
                )
        self._create_adam_state()

    def _create_adam_state(self) -> None:
        """Create the state that Adam would make at its first step, so that `state` always works."""
        for part, optimizer in zip(self._parts, self._optimizers, strict=True):
            if "exp_avg" in self._arrays:
                optimizer.state[part] = {
                    "step": torch.zeros((), device=part.device),
                    "exp_avg": torch.zeros_like(part),
                    "exp_avg_sq": torch.zeros_like(part),
                }

    def step(self, index: int, gradient: Tensor, rate: float) -> None:
        """Update one part with its gradient, at a learning rate."""
        part, optimizer = self._parts[index], self._optimizers[index]
        part.grad = gradient
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        part.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return the state by name: the arrays of all parts joined, and the number of steps."""
        states = [o.state[p] for o, p in zip(self._optimizers, self._parts, strict=True)]
        joined = {name: torch.cat([s[name].detach() for s in states]) for name in self._arrays}
        return joined | {"step": states[0]["step"].reshape(1)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        sizes = [part.numel() for part in self._parts]
        pieces = {name: torch.split(state[name], sizes) for name in self._arrays}
        for i, (part, optimizer) in enumerate(zip(self._parts, self._optimizers, strict=True)):
            own = optimizer.state[part]
            own["step"].copy_(state["step"][0])
            for name in self._arrays:
                own[name].copy_(pieces[name][i])
