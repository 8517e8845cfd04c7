"""The character convolution by table lookup, with gradients, in the compiled kernel.

What a character contributes at a position of a filter is embedding · weight, so a window is a sum
of rows of a table. The table is computed anew for the few characters that occur in a batch. The
position of each maximum is kept, and the gradient flows back there. `network.py` computes the same
in plain PyTorch.

Shape letters: U words, C characters of the alphabet or positions of a word, A characters that
occur, E character embedding, F filters, X padded filters, T columns of the table: the filters of
all widths at all positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmokit.bilm.config import CharCNNConfig
from elmokit.engine import native
from elmokit.engine.batching import IntArray
from elmokit.nn.kernel import kernel_supports, to_kernel_array

if native.kernel_available():
    from elmokit import _native

MAX_WORD_LENGTH = np.iinfo(np.int16).max
"""Longest word, in characters, since the position of a window is stored in 16 bits."""


def table_convolution(
    cnn: CharCNNConfig,
    embedding_CE: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    ids_UC: npt.NDArray[np.int16],
    characters_U: IntArray,
) -> Tensor:
    """Return the filter outputs (U, F) of words, after max-pooling and activation.

    Call it only if `can_convolve_with_tables` returns true for the model and its tensors.

    Args:
        cnn: Architecture of the character network.
        embedding_CE: Character embeddings.
        weights: Weights of the filters of each width.
        biases: Biases of the filters of each width.
        ids_UC: Character ids of the words.
        characters_U: Number of characters of each word, without padding.
    """
    outputs_UF: Tensor = _TableConvolution.apply(  # type: ignore[no-untyped-call]
        cnn, ids_UC, characters_U, embedding_CE, *weights, *biases
    )
    return outputs_UF


def can_convolve_with_tables(cnn: CharCNNConfig, *tensors: Tensor) -> bool:
    """Return whether the kernel takes these tensors and words of the model's length."""
    return kernel_supports(*tensors) and cnn.max_characters <= MAX_WORD_LENGTH


class _TableConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cnn: CharCNNConfig,
        ids_UC: npt.NDArray[np.int16],
        characters_U: IntArray,
        embedding_CE: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        weights, biases = parameters[: len(cnn.filters)], parameters[len(cnn.filters) :]
        used_A, ids_UC, lengths_U = _renumber(cnn, ids_UC, characters_U)
        chars_AE = embedding_CE[used_A]
        weight_ET = torch.cat([_pad(w.transpose(0, 1)).flatten(1) for w in weights], dim=1)
        bias_X = torch.cat([_pad(b) for b in biases])
        outputs_UF = chars_AE.new_empty(len(ids_UC), cnn.n_filters)
        positions_UX = np.empty((len(ids_UC), len(bias_X)), np.int16)
        _native.convolution_forward(
            native.instruction_set(),
            cnn.filters,
            cnn.max_characters,
            cnn.activation == "tanh",
            to_kernel_array(chars_AE @ weight_ET),
            to_kernel_array(bias_X),
            ids_UC,
            lengths_U,
            outputs_UF.numpy(),
            positions_UX,
        )
        ctx.save_for_backward(outputs_UF)
        ctx.cnn, ctx.n_characters, ctx.used_A = cnn, len(embedding_CE), used_A
        ctx.ids_UC, ctx.lengths_U, ctx.positions_UX = ids_UC, lengths_U, positions_UX
        ctx.chars_AE, ctx.weight_ET = chars_AE, weight_ET
        return outputs_UF

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs_UF: Tensor) -> tuple[Tensor | None, ...]:
        cnn, chars_AE, weight_ET = ctx.cnn, ctx.chars_AE, ctx.weight_ET
        (outputs_UF,) = ctx.saved_tensors
        d_table_AT = chars_AE.new_zeros(len(chars_AE), weight_ET.shape[1])
        d_bias_F = chars_AE.new_zeros(cnn.n_filters)
        _native.convolution_backward(
            native.instruction_set(),
            cnn.filters,
            cnn.max_characters,
            cnn.activation == "tanh",
            ctx.ids_UC,
            ctx.lengths_U,
            to_kernel_array(outputs_UF),
            ctx.positions_UX,
            to_kernel_array(d_outputs_UF),
            d_bias_F.numpy(),
            d_table_AT.numpy(),
        )
        d_embedding_CE = chars_AE.new_zeros(ctx.n_characters, chars_AE.shape[1])
        d_embedding_CE[ctx.used_A] = d_table_AT @ weight_ET.t()
        d_weight_ET = chars_AE.t() @ d_table_AT
        widths, counts = zip(*cnn.filters, strict=True)
        padded = [count + -count % _native.PADDED_FILTERS for count in counts]
        columns = [width * count for width, count in zip(widths, padded, strict=True)]
        d_weights = (
            part_ET.view(-1, width, size)[:, :, :count].transpose(0, 1).contiguous()
            for part_ET, width, count, size in zip(
                torch.split(d_weight_ET, columns, dim=1), widths, counts, padded, strict=True
            )
        )
        return None, None, None, d_embedding_CE, *d_weights, *torch.split(d_bias_F, list(counts))


def _renumber(
    cnn: CharCNNConfig, ids_UC: npt.NDArray[np.int16], characters_U: IntArray
) -> tuple[Tensor, npt.NDArray[np.int16], IntArray]:
    """Return the characters that occur, the words in numbers of those, and the words' lengths.

    The words are cut where no window reads any further.
    """
    widest = max(width for width, _ in cnn.filters)
    columns = min(int(characters_U.max(initial=0)) + widest, cnn.max_characters)
    used_UC = ids_UC[:, :columns].view(np.uint16)  # a negative id would count from the end
    occurs_C = np.zeros(cnn.characters, np.bool_)
    occurs_C[used_UC] = True
    number_C = np.cumsum(occurs_C, dtype=np.int16) - np.int16(1)
    used_A = torch.from_numpy(np.flatnonzero(occurs_C))
    return used_A, number_C[used_UC], np.ascontiguousarray(characters_U, np.int64)


def _pad(filters: Tensor) -> Tensor:
    """Pad the last axis with zeros to a multiple of the kernel's vectors."""
    missing = -filters.shape[-1] % _native.PADDED_FILTERS
    return functional.pad(filters, (0, missing)) if missing else filters
