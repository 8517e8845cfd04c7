"""Training with products of bfloat16: an LSTM layer, an affine map and the softmax, with gradients.

Weights, activations and gradients stay float32. The two factors of every matrix product are rounded
to bfloat16 (8 significant bits), and its sums are float32. CPUs with AMX compute such products many
times faster than those of float32, CPUs with AVX512_BF16 about twice as fast; on others the kernel
does so by ordinary instructions, in the order of AMX, and is slower. Needs the compiled kernel
(`src/native/train_tiles.cpp`).

Shape letters: N words of a batch, P width, H cells, G = 4H gates, B sentences, S candidates,
R touched rows of the softmax, X: S padded, I inputs, O outputs of an affine map.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.config import LSTMConfig
from elmokit.engine import native
from elmokit.engine.batching import IntArray
from elmokit.engine.native import Products
from elmokit.nn.kernel import to_kernel_array
from elmokit.nn.products import float32_affine

if native.kernel_available():
    from elmokit import _native


def affine(x_NI: Tensor, weight_IO: Tensor, bias_O: Tensor, products: Products) -> Tensor:
    """Return x·W + bias."""
    if products == "float32":
        return float32_affine(x_NI, weight_IO, bias_O)
    y_NO: Tensor = _Affine.apply(x_NI, weight_IO, bias_O)  # type: ignore[no-untyped-call]
    return y_NO


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, weight_IO: Tensor, bias_O: Tensor) -> Tensor:
        y_NO = x_NI.new_empty(len(x_NI), len(bias_O))
        _native.tile_affine_forward(
            native.instruction_set("bfloat16"),
            *map(to_kernel_array, (x_NI, weight_IO, bias_O, y_NO)),
        )
        ctx.save_for_backward(x_NI, weight_IO)
        return y_NO

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_y_NO: Tensor) -> tuple[Tensor | None, ...]:
        x_NI, weight_IO = ctx.saved_tensors
        shapes = (x_NI.shape, weight_IO.shape, weight_IO.shape[1:])
        gradients = [
            d_y_NO.new_empty(shape) if needed else None
            for shape, needed in zip(shapes, ctx.needs_input_grad, strict=True)
        ]
        _native.tile_affine_backward(
            native.instruction_set("bfloat16"),
            *map(to_kernel_array, (x_NI, weight_IO, d_y_NO)),
            *(None if d is None else d.numpy() for d in gradients),
        )
        return tuple(gradients)


class BFloat16LSTM(torch.autograd.Function):
    """One LSTM layer in one direction; `lstm.py` applies it."""

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        config: LSTMConfig,
        clips: tuple[float, float],
        alive: IntArray,
        last_rows_B: Tensor,
        x_NP: Tensor,
        h_BP: Tensor,
        c_BH: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        words, depth = len(x_NP), _native.TILE_DEPTH
        width, cells = (-(-size // depth) * depth for size in (config.width, config.cells))
        gates_NG = x_NP.new_empty(words, 4 * config.cells)
        cells_NH = x_NP.new_empty(words, config.cells)
        outputs_NP = torch.empty_like(x_NP)
        # Rounded input and previous output of each word, and its output before the projection.
        rows = words + _native.TILE_MARGIN
        factors, cell_outputs = (
            torch.empty(rows, columns, dtype=torch.int16) for columns in (2 * width, cells)
        )
        arrays: list[Any] = [*map(to_kernel_array, weights), *clips]
        arrays += map(to_kernel_array, (x_NP, h_BP, c_BH, gates_NG, cells_NH))
        arrays += (x.numpy() for x in (factors, cell_outputs, outputs_NP))
        _native.tile_lstm_forward(native.instruction_set("bfloat16"), alive, *arrays)
        ctx.alive, ctx.clips, ctx.hidden_shape = alive, clips, h_BP.shape
        ctx.save_for_backward(c_BH, gates_NG, cells_NH, factors, cell_outputs, outputs_NP, *weights)
        return outputs_NP, cells_NH.index_select(0, last_rows_B)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        d_outputs_NP, d_cell_BH = gradients
        c_BH, gates_NG, cells_NH, factors, cell_outputs, outputs_NP, *weights = ctx.saved_tensors
        d_inputs_NP = torch.empty_like(outputs_NP) if ctx.needs_input_grad[4] else None
        d_hidden_BP = c_BH.new_empty(ctx.hidden_shape)
        d_cell_BH = d_cell_BH.clone(memory_format=torch.contiguous_format)
        d_weights = [torch.empty_like(weight) for weight in weights]
        arrays: list[Any] = [*map(to_kernel_array, weights), *ctx.clips]
        arrays += map(to_kernel_array, (c_BH, gates_NG, cells_NH))
        arrays += (factors.numpy(), cell_outputs.numpy())
        arrays += map(to_kernel_array, (outputs_NP, d_outputs_NP))
        arrays.append(None if d_inputs_NP is None else d_inputs_NP.numpy())
        arrays += (d.numpy() for d in (d_hidden_BP, d_cell_BH, *d_weights))
        _native.tile_lstm_backward(native.instruction_set("bfloat16"), ctx.alive, *arrays)
        return None, None, None, None, d_inputs_NP, d_hidden_BP, d_cell_BH, *d_weights
