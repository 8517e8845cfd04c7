"""One training step of a biLM: gradients by shards, clipping, and the optimizer.

The parameters lie in one flat array. A batch comes in shards, each computed in a thread of its own
with PyTorch confined to that thread; on a CPU this keeps all cores busy from the first character to
the last gradient. Gradients are summed in the order of the shards, so the number of threads does
not change a bit. The softmax's gradients touch few rows and are exchanged as such.

Shape letters: M predictions of a shard in both directions, R rows of the softmax, P width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.weights import DIRECTIONS, SOFTMAX, FloatArray, expected_shapes
from elmokit.engine import native
from elmokit.errors import ConfigError, TrainingError
from elmokit.nn.language_model import LMBatch, run_language_model
from elmokit.nn.lstm import KERNEL_UNITS
from elmokit.nn.samplers import Candidates
from elmokit.nn.softmax import gather_softmax_rows, softmax_loss
from elmokit.nn.state import TensorState
from elmokit.threads import ThreadPool
from elmokit.train.distributed import ProcessGroup
from elmokit.train.muon import LearnedMatrix, Muon
from elmokit.train.optimizer import PartitionedOptimizer
from elmokit.train.recipe import Recipe

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class ShardBatch:
    """The part of a batch that one thread computes."""

    reading: LMBatch
    """Words to read and to predict."""
    start: TensorState
    """LSTM state before the first word."""
    seed: tuple[int, ...]
    """Random seed of dropout."""


@dataclass(frozen=True)
class StepResult:
    """The outcome of one training step."""

    loss: float
    """Mean loss over all predictions of the batch in nats, by the sampled softmax."""
    norm: float
    """Norm of the gradient before clipping."""
    final_states: list[TensorState]
    """LSTM state after the last word of each of this process's shards."""


@dataclass(frozen=True)
class _ShardGradient:
    """The loss of a shard and its gradient."""

    network: Tensor
    """Gradient of all parameters except the softmax, joined; empty if only the softmax is
    trained."""
    rows_R: Tensor
    """Rows of the softmax that `softmax` belongs to."""
    softmax: tuple[Tensor, Tensor]
    """Gradients of those rows: weight and bias."""
    loss: float
    """Sum of the loss over the shard's predictions."""
    final_state: TensorState


class Trainer:
    """The parameters of a biLM in training, and the step that updates them."""

    def __init__(
        self,
        config: BiLMConfig,
        weights: Mapping[str, FloatArray],
        recipe: Recipe,
        group: ProcessGroup,
        device: torch.device,
        *,
        only_softmax: bool = False,
    ) -> None:
        """Copy the weights to the device, and start the threads.

        Args:
            config: Architecture.
            weights: Initial weights of network and softmax.
            recipe: How to train.
            group: The processes that train together.
            device: Device to train on.
            only_softmax: Train the softmax and leave the network unchanged.
        """
        _check_products(recipe, config, device)
        self.config, self.recipe = config, recipe
        self._group, self._device, self._trains_network = group, device, not only_softmax
        self._names = list(expected_shapes(config))
        self._shapes = {name: weights[name].shape for name in (*self._names, *SOFTMAX)}
        # In memory that PyTorch allocates: its alignment, and so the order of sums, never differs.
        self.parameters = torch.empty(sum(map(math.prod, self._shapes.values())), device=device)
        """All parameters in one flat array."""
        self._views = _views(self.parameters, self._shapes)
        for name, view in self._views.items():
            view.copy_(torch.from_numpy(np.array(weights[name], np.float32)))
        self._network_size = sum(self._views[name].numel() for name in self._names)
        self._gradient = torch.zeros_like(self.parameters)
        # Parts of the flat array that are updated in parallel.
        first = self._network_size if only_softmax else 0
        cuts = np.linspace(first, self.parameters.numel(), recipe.shards + 1)
        self._parts = [slice(*ends) for ends in pairwise(cuts.astype(np.int64).tolist())]
        self.optimizer = PartitionedOptimizer(recipe, [self.parameters[p] for p in self._parts])
        """Optimizer of the parameters, one by one."""
        self.muon: Muon | None = None
        """Optimizer of the LSTMs' matrices, whose gradients are zero for the other one then."""
        if recipe.optimizer == "muon" and not only_softmax:
            self.muon = Muon(self._lstm_matrices(), _muon_dtype(recipe))
        self._threads = ThreadPool(
            max(1, recipe.shards // group.world), "shard", lambda: torch.set_num_threads(1)
        )

    def weights(self) -> dict[str, FloatArray]:
        """Return a copy of the weights by name, for the engine and for files."""
        views = _views(self.parameters.detach().cpu().clone(), self._shapes)
        return {name: view.numpy() for name, view in views.items()}

    def zero_state(self, rows: int) -> TensorState:
        """Return the LSTM state before any word, for a number of sentences or lanes."""
        return TensorState.zeros(self.config, rows, device=self._device)

    def train_step(
        self, shards: Sequence[ShardBatch], candidates: Candidates, tokens: int, rate: float
    ) -> StepResult:
        """Compute the gradient of a batch and update the parameters.

        Args:
            shards: This process's shards of the batch.
            candidates: Words of the sampled softmax.
            tokens: Predictions in each direction, over all shards of all processes.
            rate: Learning rate.
        """
        gradients = self._map(lambda s: self._compute_shard(s, candidates, tokens), shards)
        self._sum_gradients(gradients)
        norm = math.sqrt(sum(self._map(lambda part: _square(self._gradient[part]), self._parts)))
        if not math.isfinite(norm):
            raise TrainingError(
                "the gradient is not finite: training has diverged. Start again with a learning "
                f"rate below {self.recipe.rate:g}"
            )
        scale = min(1.0, self.recipe.clip / (norm + 1e-6))

        if (muon := self.muon) is not None:
            self._map(lambda index: muon.step(index, scale, rate), range(len(muon)))

        def update(index: int) -> None:
            self.optimizer.step(index, self._gradient[self._parts[index]].mul_(scale), rate)

        self._map(update, range(len(self._parts)))
        loss = self._mean_loss([gradient.loss for gradient in gradients], tokens)
        return StepResult(loss, norm, [gradient.final_state for gradient in gradients])

    def optimizer_state(self) -> dict[str, Tensor]:
        """Return the state of the optimizers by name, for a checkpoint."""
        momentum = {} if self.muon is None else {"momentum": self.muon.state()}
        return self.optimizer.state() | momentum

    def load_optimizer_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `optimizer_state` returned."""
        self.optimizer.load(state)
        if self.muon is not None:
            self.muon.load(state["momentum"])

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown()

    def _lstm_matrices(self) -> list[LearnedMatrix]:
        """Return the matrices that Muon learns; those of the four gates are separate."""
        gradients = _views(self._gradient, self._shapes)
        return [
            LearnedMatrix(*block)
            for name in self._names
            if name.startswith(DIRECTIONS) and self._views[name].ndim == 2
            for gates in (1 if ".projection." in name else 4,)
            for block in zip(
                self._views[name].chunk(gates, 1), gradients[name].chunk(gates, 1), strict=True
            )
        ]

    def _compute_shard(
        self, shard: ShardBatch, candidates: Candidates, tokens: int
    ) -> _ShardGradient:
        """Run the forward and backward pass of one shard."""
        dropout = self._make_dropout(shard.seed)
        network = {
            name: self._views[name].detach().requires_grad_(self._trains_network)
            for name in self._names
        }
        top_MP, final_state = run_language_model(
            self.config, network, shard.reading, shard.start, dropout, self.recipe.products
        )
        targets_M = torch.from_numpy(shard.reading.targets_2N.reshape(-1)).to(self._device)
        rows_R, target_rows_M = gather_softmax_rows(candidates, targets_M)
        rows_RP, bias_R = (
            self._views[name].index_select(0, rows_R).requires_grad_() for name in SOFTMAX
        )
        total = softmax_loss(
            dropout(top_MP),
            rows_RP,
            bias_R,
            target_rows_M,
            candidates,
            rows_R,
            self.recipe.products,
        )
        loss = total * (self.recipe.loss_scale / (2 * tokens))
        trained = [*network.values()] if self._trains_network else []
        *dense, d_rows, d_bias = torch.autograd.grad(loss, [*trained, rows_RP, bias_R])
        joined = (
            torch.cat([d.reshape(-1) for d in dense]) if dense else self.parameters.new_empty(0)
        )
        return _ShardGradient(
            joined, rows_R, (d_rows, d_bias), float(total.detach()), final_state.detach()
        )

    def _make_dropout(self, seed: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
        """Return a dropout function with a generator of its own, since threads share PyTorch's."""
        keep = 1 - self.recipe.dropout
        if keep == 1:
            return lambda x: x
        number = np.random.SeedSequence(seed).generate_state(1)[0]
        generator = torch.Generator(self._device).manual_seed(int(number))
        return lambda x: x * torch.empty_like(x).bernoulli_(keep, generator=generator).div_(keep)

    def _sum_gradients(self, gradients: Sequence[_ShardGradient]) -> None:
        """Sum the gradients of all shards of all processes, in their order."""
        network = gradients[0].network
        for other in gradients[1:]:
            network.add_(other.network)
        if len(network):
            self._group.sum_(network)
            self._gradient[: self._network_size] = network
        self._gradient[self._network_size :].zero_()
        by_process = zip(
            self._group.gather(torch.cat([g.rows_R for g in gradients])),
            *(
                self._group.gather(torch.cat([g.softmax[k] for g in gradients]))
                for k in range(len(SOFTMAX))
            ),
            strict=True,
        )
        views = _views(self._gradient, self._shapes)
        for rows_R, *parts in by_process:
            for name, part in zip(SOFTMAX, parts, strict=True):
                views[name].index_add_(0, rows_R, part)

    def _mean_loss(self, losses: Sequence[float], tokens: int) -> float:
        total = torch.tensor([sum(losses)], dtype=torch.float64, device=self._device)
        self._group.sum_(total)
        return float(total) / (2 * tokens)

    def _map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return list(self._threads.map(work, items))


def _check_products(recipe: Recipe, config: BiLMConfig, device: torch.device) -> None:
    """Raise `ConfigError` if the recipe asks for products that this machine cannot compute."""
    if recipe.products == "float32":
        return
    expected = "train with products of float32, the default"
    if not native.kernel_available():
        raise ConfigError(
            f"products of {recipe.products} need the compiled kernel: {native.kernel_error()}; "
            f"{expected}"
        )
    if device.type != "cpu":
        raise ConfigError(
            f"products of {recipe.products} are computed on a CPU; the device is {device}; "
            f"{expected}"
        )
    if not config.lstm.projection or config.lstm.cells % KERNEL_UNITS:
        raise ConfigError(
            f"products of {recipe.products} need an LSTM with a projection and a multiple of "
            f"{KERNEL_UNITS} cells; it has {config.lstm.cells} cells"
            f"{'' if config.lstm.projection else ' and no projection'}; {expected}"
        )


def _muon_dtype(recipe: Recipe) -> torch.dtype:
    """Return the type in which Muon makes its updates orthogonal: bfloat16 where that is faster.

    PyTorch computes it, and is trusted with AVX512_BF16 only (docs/decisions.md).
    """
    fast = recipe.products == "bfloat16" and native.instruction_set("bfloat16") == "avx512_bf16"
    return torch.bfloat16 if fast else torch.float32


def _views(flat: Tensor, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Return the named arrays that lie one after another in a flat one."""
    pieces = torch.split(flat, [math.prod(shape) for shape in shapes.values()])
    return {n: p.view(s) for (n, s), p in zip(shapes.items(), pieces, strict=True)}


def _square(x: Tensor) -> float:
    return float(torch.dot(x, x))
