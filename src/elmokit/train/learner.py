"""A biLM that learns: parameters in one long array, gradients by shards, one step of the optimizer.

A batch comes in shards. Each is computed in a thread of its own, with PyTorch confined to that
thread: on a CPU that keeps all cores busy from the first character to the last gradient. The
gradients are added in the order of the shards, so the number of threads does not change a bit.
The softmax's gradients touch few rows and travel as such.

Shape letters: M predictions of a shard in both directions, R rows of the softmax, P width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.weights import SOFTMAX, FloatArray, expected_shapes
from elmokit.errors import TrainingError
from elmokit.nn.reading import Reading, read_both
from elmokit.nn.softmax import Candidates, gathered_rows, softmax_loss
from elmokit.nn.state import TensorState
from elmokit.train.distributed import Group
from elmokit.train.optimizer import Optimizer
from elmokit.train.recipe import Recipe

Thing = TypeVar("Thing")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lesson:
    """One shard of a batch."""

    reading: Reading
    start: TensorState
    seed: tuple[int, ...]
    """Of what dropout drops."""


@dataclass(frozen=True)
class Taught:
    """What a step did."""

    loss: float
    """The mean over all predictions of the batch, in nats; of a sample of the vocabulary."""
    norm: float
    """Of the gradient, before it was clipped."""
    after: list[TensorState]
    """The state after each of this process's shards."""


@dataclass(frozen=True)
class _Gradient:
    """Of one shard."""

    network: Tensor
    """All parameters but the softmax, joined; empty if only the softmax learns."""
    rows_R: Tensor
    """The rows of the softmax that the following belongs to."""
    softmax: tuple[Tensor, Tensor]
    loss: float
    """The sum over its predictions."""
    after: TensorState


class Learner:
    """The parameters of a run, and how they change."""

    def __init__(
        self,
        config: BiLMConfig,
        weights: Mapping[str, FloatArray],
        recipe: Recipe,
        group: Group,
        device: torch.device,
        *,
        only_softmax: bool = False,
    ) -> None:
        """Copies the weights; `only_softmax` leaves the network as it is."""
        self.config, self.recipe = config, recipe
        self._group, self._device, self._network_learns = group, device, not only_softmax
        self._names = list(expected_shapes(config))
        self._shapes = {name: weights[name].shape for name in (*self._names, *SOFTMAX)}
        # In memory of PyTorch's own, whose alignment never differs, nor the order of its sums.
        self.flat = torch.empty(sum(map(math.prod, self._shapes.values())), device=device)
        self._views = _views(self.flat, self._shapes)
        for name, view in self._views.items():
            view.copy_(torch.from_numpy(np.array(weights[name], np.float32)))
        self._network_size = sum(self._views[name].numel() for name in self._names)
        self._gradient = torch.zeros_like(self.flat)
        # Parts of the long array that are updated side by side.
        first = self._network_size if only_softmax else 0
        cuts = np.linspace(first, self.flat.numel(), recipe.shards + 1).astype(np.int64).tolist()
        self._parts = [slice(*cut) for cut in pairwise(cuts)]
        self.optimizer = Optimizer(recipe, [self.flat[part] for part in self._parts])
        self._threads = ThreadPoolExecutor(
            max(1, recipe.shards // group.world), "shard", torch.set_num_threads, (1,)
        )

    def weights(self) -> dict[str, FloatArray]:
        """A copy for the engine and for files."""
        views = _views(self.flat.detach().cpu().clone(), self._shapes)
        return {name: view.numpy() for name, view in views.items()}

    def zero_state(self, rows: int) -> TensorState:
        """Nothing read yet."""
        return TensorState.zeros(self.config, rows, device=self._device)

    def learn(
        self, lessons: Sequence[Lesson], candidates: Candidates, words: int, rate: float
    ) -> Taught:
        """One step.

        `lessons` are this process's shards; `words` is how many predictions all shards of all
        processes make in each direction.
        """
        shards = self._each(lambda lesson: self._shard(lesson, candidates, words), lessons)
        self._add_up(shards)
        norm = math.sqrt(sum(self._each(lambda part: _square(self._gradient[part]), self._parts)))
        if not math.isfinite(norm):
            raise TrainingError(
                "the gradient is no longer finite: training has diverged. Begin again with a rate "
                f"below {self.recipe.rate:g}"
            )
        scale = min(1.0, self.recipe.clip / (norm + 1e-6))

        def update(index: int) -> None:
            self.optimizer.step(index, self._gradient[self._parts[index]].mul_(scale), rate)

        self._each(update, range(len(self._parts)))
        return Taught(self._mean([s.loss for s in shards], words), norm, [s.after for s in shards])

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown()

    def _shard(self, lesson: Lesson, candidates: Candidates, words: int) -> _Gradient:
        """Forward and back through one shard."""
        drop = self._dropout(lesson.seed)
        network = {
            name: self._views[name].detach().requires_grad_(self._network_learns)
            for name in self._names
        }
        said_MP, after = read_both(self.config, network, lesson.reading, lesson.start, drop)
        targets_M = torch.from_numpy(lesson.reading.targets_2N.reshape(-1)).to(self._device)
        rows_R, target_rows_M = gathered_rows(candidates, targets_M)
        rows_RP, bias_R = (
            self._views[name].index_select(0, rows_R).requires_grad_() for name in SOFTMAX
        )
        total = softmax_loss(drop(said_MP), rows_RP, bias_R, target_rows_M, candidates, rows_R)
        loss = total * (self.recipe.loss_scale / (2 * words))
        learning = [*network.values()] if self._network_learns else []
        *dense, d_rows, d_bias = torch.autograd.grad(loss, [*learning, rows_RP, bias_R])
        joined = torch.cat([d.reshape(-1) for d in dense]) if dense else self.flat.new_empty(0)
        return _Gradient(joined, rows_R, (d_rows, d_bias), float(total.detach()), after.detach())

    def _dropout(self, seed: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
        """From a generator of its own, since threads share PyTorch's."""
        keep = 1 - self.recipe.dropout
        if keep == 1:
            return lambda x: x
        number = np.random.SeedSequence(seed).generate_state(1)[0]
        source = torch.Generator(self._device).manual_seed(int(number))
        return lambda x: x * torch.empty_like(x).bernoulli_(keep, generator=source).div_(keep)

    def _add_up(self, shards: Sequence[_Gradient]) -> None:
        """All shards of all processes, in their order."""
        network = shards[0].network
        for more in shards[1:]:
            network.add_(more.network)
        if len(network):
            self._group.add_up(network)
            self._gradient[: self._network_size] = network
        self._gradient[self._network_size :].zero_()
        everyone = zip(
            self._group.gather(torch.cat([s.rows_R for s in shards])),
            *(
                self._group.gather(torch.cat([s.softmax[k] for s in shards]))
                for k in range(len(SOFTMAX))
            ),
            strict=True,
        )
        views = _views(self._gradient, self._shapes)
        for rows_R, *parts in everyone:
            for name, part in zip(SOFTMAX, parts, strict=True):
                views[name].index_add_(0, rows_R, part)

    def _mean(self, losses: Sequence[float], words: int) -> float:
        total = torch.tensor([sum(losses)], dtype=torch.float64, device=self._device)
        self._group.add_up(total)
        return float(total) / (2 * words)

    def _each(self, work: Callable[[Thing], Result], things: Sequence[Thing]) -> list[Result]:
        return list(self._threads.map(work, things))


def _views(flat: Tensor, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The arrays that lie one after another in a long one."""
    pieces = torch.split(flat, [math.prod(shape) for shape in shapes.values()])
    return {n: p.view(s) for (n, s), p in zip(shapes.items(), pieces, strict=True)}


def _square(x: Tensor) -> float:
    return float(torch.dot(x, x))
