"""One LSTM layer with projection and clips, in one direction, over packed words.

Twice: plain PyTorch, which says what is computed and runs everywhere; and an autograd function over
the compiled kernel (`src/native/learn_lstm.cpp`), which is faster on a CPU. A test binds the two.
Where a clip bites, no gradient passes.

Shape letters: N words of a batch, P width, H cells, G = 4H gates, B sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.config import LSTM
from elmokit.engine import native
from elmokit.engine.batching import IntArray
from elmokit.engine.reference import FORGET_BIAS
from elmokit.nn.compiled import floats, usable

if native.available():
    from elmokit import _native

KERNEL_UNITS = 16
"""The kernel takes cells in multiples of this."""

Said = tuple[Tensor, Tensor, Tensor]
"""The outputs (N, P), and each sentence's last hidden state (B, P) and cell (B, H)."""


class LSTMWeights(NamedTuple):
    """One layer in one direction: gates in the order i, j, f, o, as the files have them."""

    input_PG: Tensor
    recurrent_PG: Tensor
    bias_G: Tensor
    projection_HP: Tensor | None

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], name: str) -> LSTMWeights:
        """By the canonical prefix, such as `forward.0`."""
        return cls(
            weights[f"{name}.input.weight"],
            weights[f"{name}.recurrent.weight"],
            weights[f"{name}.bias"],
            weights.get(f"{name}.projection.weight"),
        )


def projected_lstm(
    config: LSTM, weights: LSTMWeights, x_NP: Tensor, alive: IntArray, h_BP: Tensor, c_BH: Tensor
) -> Said:
    """Read the words: at step t the first `alive[t]` sentences have one (`engine/batching.py`)."""
    if (
        weights.projection_HP is not None
        and config.cells % KERNEL_UNITS == 0
        and usable(x_NP, h_BP, c_BH, weights.input_PG)
    ):
        said_NP, cell_BH = _Fused.apply(  # type: ignore[no-untyped-call]
            config, alive, x_NP, h_BP, c_BH, *weights
        )
        return said_NP, said_NP.index_select(0, torch.from_numpy(_last_rows(alive))), cell_BH
    return _plain(config, weights, x_NP, alive, h_BP, c_BH)


def _plain(
    config: LSTM, weights: LSTMWeights, x_NP: Tensor, alive: IntArray, h_BP: Tensor, c_BH: Tensor
) -> Said:
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
    return torch.cat(outputs), torch.cat(hidden), torch.cat(cell)


class _Fused(torch.autograd.Function):
    """The steps in the kernel; the large products, which are not sequential, in PyTorch."""

    @staticmethod
    def forward(
        ctx: Any,
        config: LSTM,
        alive: IntArray,
        x_NP: Tensor,
        h_BP: Tensor,
        c_BH: Tensor,
        input_PG: Tensor,
        recurrent_PG: Tensor,
        bias_G: Tensor,
        projection_HP: Tensor,
    ) -> tuple[Tensor, Tensor]:
        gates_NG = torch.addmm(bias_G, x_NP, input_PG)  # the kernel puts the gates' values here
        cells_NH = x_NP.new_empty(len(x_NP), config.cells)
        outputs_NH = torch.empty_like(cells_NH)
        said_NP = x_NP.new_empty(len(x_NP), config.width)
        _native.lstm_forward(
            native.instruction_set(),
            alive,
            floats(recurrent_PG),
            floats(projection_HP),
            *_clips(config),
            floats(h_BP),
            floats(c_BH),
            *map(floats, (gates_NG, cells_NH, outputs_NH, said_NP)),
        )
        ctx.config, ctx.alive = config, alive
        ctx.save_for_backward(
            *(x_NP, h_BP, c_BH, input_PG, recurrent_PG, projection_HP),
            *(gates_NG, cells_NH, outputs_NH, said_NP),
        )
        return said_NP, cells_NH.index_select(0, torch.from_numpy(_last_rows(alive)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_said_NP, d_cell_BH = gradients
        x_NP, h_BP, c_BH, input_PG, recurrent_PG, projection_HP, *kept = ctx.saved_tensors
        gates_NG, cells_NH, outputs_NH, said_NP = kept
        d_hidden_BP = h_BP.new_empty(h_BP.shape)
        d_cell_BH = d_cell_BH.clone(memory_format=torch.contiguous_format)
        d_gates_NG, d_projected_NP = torch.empty_like(gates_NG), torch.empty_like(said_NP)
        _native.lstm_backward(
            native.instruction_set(),
            ctx.alive,
            floats(recurrent_PG),
            floats(projection_HP),
            *_clips(ctx.config),
            *map(floats, (c_BH, gates_NG, cells_NH, said_NP, d_said_NP)),
            *map(floats, (d_hidden_BP, d_cell_BH, d_gates_NG, d_projected_NP)),
        )
        heard_NP = torch.cat([h_BP, said_NP.index_select(0, _rows_before(ctx.alive))])
        d_input_PG, d_recurrent_PG = (torch.cat([x_NP, heard_NP], 1).t() @ d_gates_NG).chunk(2)
        return (
            None,
            None,
            d_gates_NG @ input_PG.t() if ctx.needs_input_grad[2] else None,
            d_hidden_BP,
            d_cell_BH,
            d_input_PG,
            d_recurrent_PG,
            d_gates_NG.sum(0),
            outputs_NH.t() @ d_projected_NP,
        )


def _clips(config: LSTM) -> tuple[float, float]:
    return config.cell_clip or np.inf, config.projection_clip or np.inf


def _last_rows(alive: IntArray) -> IntArray:
    """(B,) the row of each sentence's last word; ranks as in the packing."""
    first_row = np.cumsum(alive) - alive
    ranks = np.arange(alive[0])
    steps = np.searchsorted(-alive, -ranks, side="left")  # how many steps have more than rank
    rows: IntArray = first_row[steps - 1] + ranks
    return rows


def _rows_before(alive: IntArray) -> Tensor:
    """For every word but the first of each sentence, the row of the word before it."""
    first_row = np.cumsum(alive) - alive
    step = np.repeat(np.arange(1, len(alive)), alive[1:])
    rank = np.arange(alive[0], alive.sum()) - first_row[step]
    return torch.from_numpy(first_row[step - 1] + rank)
