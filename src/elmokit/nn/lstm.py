"""One LSTM layer with projection and clipping, in one direction, over packed words.

There are two implementations: plain PyTorch, which is easy to read and runs on any device; and an
autograd function over the compiled kernel (`src/native/train_lstm.cpp`), which is faster on a CPU.
A test compares the two. `bfloat16.py` has a third one, for products of bfloat16. Where a value is
clipped, no gradient passes.

Shape letters: N words of a batch, P width, H cells, G = 4H gates, B sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.config import LSTMConfig
from elmokit.bilm.weights import FORGET_BIAS
from elmokit.engine import native
from elmokit.engine.batching import IntArray
from elmokit.engine.native import Products
from elmokit.nn.bfloat16 import BFloat16LSTM
from elmokit.nn.kernel import kernel_supports, to_kernel_array
from elmokit.nn.products import multiply

if native.kernel_available():
    from elmokit import _native

KERNEL_UNITS = 16
"""The kernel needs the number of cells to be a multiple of this."""


class LSTMOutput(NamedTuple):
    """Result of one LSTM layer in one direction."""

    outputs_NP: Tensor
    """Output at each word."""
    hidden_BP: Tensor
    """Hidden state of each sentence after its last word."""
    cell_BH: Tensor
    """Cell values of each sentence after its last word."""


class LSTMWeights(NamedTuple):
    """Weights of one layer in one direction, with gates in the file order i, j, f, o."""

    input_PG: Tensor
    recurrent_PG: Tensor
    bias_G: Tensor
    projection_HP: Tensor | None

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor], prefix: str) -> LSTMWeights:
        """Pick the weights with a canonical prefix, such as `forward.0`."""
        return cls(
            weights[f"{prefix}.input.weight"],
            weights[f"{prefix}.recurrent.weight"],
            weights[f"{prefix}.bias"],
            weights.get(f"{prefix}.projection.weight"),
        )


def projected_lstm(
    config: LSTMConfig,
    weights: LSTMWeights,
    x_NP: Tensor,
    alive: IntArray,
    h_BP: Tensor,
    c_BH: Tensor,
    products: Products = "float32",
) -> LSTMOutput:
    """Run the layer over a packed batch, by the compiled kernel where that is possible.

    Args:
        config: Architecture of the LSTM.
        weights: Weights of this layer.
        x_NP: Input at each word, packed step by step (`engine/batching.py`).
        alive: Number of sentences that have a word at each step.
        h_BP: Hidden state before the first word.
        c_BH: Cell values before the first word.
        products: How the kernel rounds the factors of products; plain PyTorch does not round.
    """
    if (
        weights.projection_HP is not None
        and config.cells % KERNEL_UNITS == 0
        and kernel_supports(x_NP, h_BP, c_BH, weights.input_PG)
    ):
        last_rows_B = torch.from_numpy(_last_rows(alive))
        if products == "bfloat16":
            outputs_NP, cell_BH = BFloat16LSTM.apply(  # type: ignore[no-untyped-call]
                config, _clips(config), alive, last_rows_B, x_NP, h_BP, c_BH, *weights
            )
        else:
            outputs_NP, cell_BH = _KernelLSTM.apply(  # type: ignore[no-untyped-call]
                config, alive, x_NP, h_BP, c_BH, *weights
            )
        return LSTMOutput(outputs_NP, outputs_NP.index_select(0, last_rows_B), cell_BH)
    return _plain_lstm(config, weights, x_NP, alive, h_BP, c_BH)


def _plain_lstm(
    config: LSTMConfig,
    weights: LSTMWeights,
    x_NP: Tensor,
    alive: IntArray,
    h_BP: Tensor,
    c_BH: Tensor,
) -> LSTMOutput:
    gates_NG = torch.addmm(weights.bias_G, x_NP, weights.input_PG)
    outputs: list[Tensor] = []
    ended: list[tuple[Tensor, Tensor]] = []
    h, c = h_BP, c_BH
    steps = alive.tolist()
    for live, gates in zip(steps, torch.split(gates_NG, steps), strict=True):
        if live < len(h):
            ended.append((h[live:], c[live:]))
            h, c = h[:live], c[:live]
        i, j, f, o = torch.addmm(gates, h, weights.recurrent_PG).chunk(4, dim=1)
        c = (f + FORGET_BIAS).sigmoid() * c + i.sigmoid() * j.tanh()
        if config.cell_clip is not None:
            c = c.clamp(-config.cell_clip, config.cell_clip)
        h = o.sigmoid() * c.tanh()
        if weights.projection_HP is not None:
            h = h @ weights.projection_HP
            if config.projection_clip is not None:
                h = h.clamp(-config.projection_clip, config.projection_clip)
        outputs.append(h)
    hidden, cell = zip((h, c), *reversed(ended), strict=True)
    return LSTMOutput(torch.cat(outputs), torch.cat(hidden), torch.cat(cell))


class _KernelLSTM(torch.autograd.Function):
    """The steps run in the kernel; for the large products, see `products.py`."""

    @staticmethod
    def forward(
        ctx: Any,
        config: LSTMConfig,
        alive: IntArray,
        x_NP: Tensor,
        h_BP: Tensor,
        c_BH: Tensor,
        input_PG: Tensor,
        recurrent_PG: Tensor,
        bias_G: Tensor,
        projection_HP: Tensor,
    ) -> tuple[Tensor, Tensor]:
        gates_NG = multiply(x_NP, input_PG, bias_G)  # replaced by the gates' values
        cells_NH = x_NP.new_empty(len(x_NP), config.cells)
        cell_outputs_NH = torch.empty_like(cells_NH)  # before the projection
        outputs_NP = x_NP.new_empty(len(x_NP), config.width)
        _native.lstm_forward(
            native.instruction_set(),
            alive,
            to_kernel_array(recurrent_PG),
            to_kernel_array(projection_HP),
            *_clips(config),
            to_kernel_array(h_BP),
            to_kernel_array(c_BH),
            *map(to_kernel_array, (gates_NG, cells_NH, cell_outputs_NH, outputs_NP)),
        )
        ctx.config, ctx.alive = config, alive
        ctx.save_for_backward(
            *(x_NP, h_BP, c_BH, input_PG, recurrent_PG, projection_HP),
            *(gates_NG, cells_NH, cell_outputs_NH, outputs_NP),
        )
        return outputs_NP, cells_NH.index_select(0, torch.from_numpy(_last_rows(alive)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_outputs_NP, d_cell_BH = gradients
        x_NP, h_BP, c_BH, input_PG, recurrent_PG, projection_HP, *results = ctx.saved_tensors
        gates_NG, cells_NH, cell_outputs_NH, outputs_NP = results
        d_hidden_BP = h_BP.new_empty(h_BP.shape)
        d_cell_BH = d_cell_BH.clone(memory_format=torch.contiguous_format)
        d_gates_NG, d_projected_NP = torch.empty_like(gates_NG), torch.empty_like(outputs_NP)
        _native.lstm_backward(
            native.instruction_set(),
            ctx.alive,
            to_kernel_array(recurrent_PG),
            to_kernel_array(projection_HP),
            *_clips(ctx.config),
            *map(to_kernel_array, (c_BH, gates_NG, cells_NH, outputs_NP, d_outputs_NP)),
            *map(to_kernel_array, (d_hidden_BP, d_cell_BH, d_gates_NG, d_projected_NP)),
        )
        previous_NP = torch.cat([h_BP, outputs_NP.index_select(0, _previous_rows(ctx.alive))])
        # One product for the weights of both inputs, and of a third one that is always 1: the bias.
        factors = [x_NP, previous_NP, x_NP.new_ones(len(x_NP), 1)]
        d_weights_XG = multiply(torch.cat(factors, 1).t(), d_gates_NG)
        sizes = [x.shape[1] for x in factors]
        d_input_PG, d_recurrent_PG, d_bias_1G = torch.split(d_weights_XG, sizes)
        return (
            None,
            None,
            multiply(d_gates_NG, input_PG.t()) if ctx.needs_input_grad[2] else None,
            d_hidden_BP,
            d_cell_BH,
            d_input_PG,
            d_recurrent_PG,
            d_bias_1G[0],
            multiply(cell_outputs_NH.t(), d_projected_NP) if ctx.needs_input_grad[8] else None,
        )


def _clips(config: LSTMConfig) -> tuple[float, float]:
    return config.cell_clip or np.inf, config.projection_clip or np.inf


def _last_rows(alive: IntArray) -> IntArray:
    """Return the row of each sentence's last word (B,), by rank in the packing."""
    first_row = np.cumsum(alive) - alive
    ranks = np.arange(alive[0])
    steps = np.searchsorted(-alive, -ranks, side="left")  # number of steps with more than `rank`
    rows: IntArray = first_row[steps - 1] + ranks
    return rows


def _previous_rows(alive: IntArray) -> Tensor:
    """Return, for every word but the first of each sentence, the row of the word before it."""
    first_row = np.cumsum(alive) - alive
    step = np.repeat(np.arange(1, len(alive)), alive[1:])
    rank = np.arange(alive[0], alive.sum()) - first_row[step]
    return torch.from_numpy(first_row[step - 1] + rank)
