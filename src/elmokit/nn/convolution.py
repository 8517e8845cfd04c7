"""The character convolution by tables, with gradients: what the compiled kernel does for learning.

What a character adds at a place of a filter is embedding · weight, so a window is a sum of rows of
a table, which is made anew for the few characters that a batch has. The maximum keeps its place,
and the gradient goes back there. `network.py` has the same in plain PyTorch.

Shape letters: U words, C characters of the alphabet or places of a word, A characters that occur,
E character embedding, F filters, X padded filters, T columns of the table: the filters of all
widths at all places.
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

from elmokit.bilm.config import CharCNN
from elmokit.engine import native
from elmokit.engine.batching import IntArray
from elmokit.nn.compiled import floats, usable

if native.available():
    from elmokit import _native

LONGEST = np.iinfo(np.int16).max
"""The place of a window is kept in 16 bits."""


def table_convolution(
    cnn: CharCNN,
    embedding_CE: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    ids_UC: npt.NDArray[np.int16],
    characters_U: IntArray,
) -> Tensor:
    """Words as characters, of which `characters_U` are no padding, to filter outputs (U, F).

    After the maximum and the activation. Needs what `possible` asks for.
    """
    outputs_UF: Tensor = _TableConvolution.apply(  # type: ignore[no-untyped-call]
        cnn, ids_UC, characters_U, embedding_CE, *weights, *biases
    )
    return outputs_UF


def possible(cnn: CharCNN, *tensors: Tensor) -> bool:
    """Whether the kernel is there and can take these tensors and words of this length."""
    return usable(*tensors) and cnn.max_characters <= LONGEST


class _TableConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cnn: CharCNN,
        ids_UC: npt.NDArray[np.int16],
        characters_U: IntArray,
        embedding_CE: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        weights, biases = parameters[: len(cnn.filters)], parameters[len(cnn.filters) :]
        used_A, ids_UC, lengths_U = _compact(cnn, ids_UC, characters_U)
        chars_AE = embedding_CE[used_A]
        weight_ET = torch.cat([_pad(w.transpose(0, 1)).flatten(1) for w in weights], dim=1)
        bias_X = torch.cat([_pad(b) for b in biases])
        outputs_UF = chars_AE.new_empty(len(ids_UC), cnn.n_filters)
        places_UX = np.empty((len(ids_UC), len(bias_X)), np.int16)
        _native.windows(
            native.instruction_set(),
            cnn.filters,
            cnn.max_characters,
            cnn.activation == "tanh",
            floats(chars_AE @ weight_ET),
            floats(bias_X),
            ids_UC,
            lengths_U,
            outputs_UF.numpy(),
            places_UX,
        )
        ctx.save_for_backward(outputs_UF)
        ctx.kept = cnn, len(embedding_CE), used_A, ids_UC, lengths_U, chars_AE, weight_ET, places_UX
        return outputs_UF

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_UF: Tensor) -> tuple[Tensor | None, ...]:
        cnn, characters, used_A, ids_UC, lengths_U, chars_AE, weight_ET, places_UX = ctx.kept
        (outputs_UF,) = ctx.saved_tensors
        table_AT = chars_AE.new_zeros(len(chars_AE), weight_ET.shape[1])
        bias_F = chars_AE.new_zeros(cnn.n_filters)
        _native.windows_backward(
            native.instruction_set(),
            cnn.filters,
            cnn.max_characters,
            cnn.activation == "tanh",
            ids_UC,
            lengths_U,
            floats(outputs_UF),
            places_UX,
            floats(gradient_UF),
            bias_F.numpy(),
            table_AT.numpy(),
        )
        embedding_CE = chars_AE.new_zeros(characters, chars_AE.shape[1])
        embedding_CE[used_A] = table_AT @ weight_ET.t()
        weight_ET = chars_AE.t() @ table_AT
        widths, counts = zip(*cnn.filters, strict=True)
        padded = [count + -count % _native.PADDED_FILTERS for count in counts]
        columns = [width * count for width, count in zip(widths, padded, strict=True)]
        weights = (
            part_ET.view(-1, width, size)[:, :, :count].transpose(0, 1).contiguous()
            for part_ET, width, count, size in zip(
                torch.split(weight_ET, columns, dim=1), widths, counts, padded, strict=True
            )
        )
        return None, None, None, embedding_CE, *weights, *torch.split(bias_F, list(counts))


def _compact(
    cnn: CharCNN, ids_UC: npt.NDArray[np.int16], characters_U: IntArray
) -> tuple[Tensor, npt.NDArray[np.int16], IntArray]:
    """The characters that occur, and the words in their numbers, no wider than windows reach."""
    widest = max(width for width, _ in cnn.filters)
    seen = min(int(characters_U.max(initial=0)) + widest, cnn.max_characters)
    places_UC = ids_UC[:, :seen].view(np.uint16)  # a negative id would count from the end
    there_C = np.zeros(cnn.characters, np.bool_)
    there_C[places_UC] = True
    number_C = np.cumsum(there_C, dtype=np.int16) - np.int16(1)
    used_A = torch.from_numpy(np.flatnonzero(there_C))
    return used_A, number_C[places_UC], np.ascontiguousarray(characters_U, np.int64)


def _pad(filters: Tensor) -> Tensor:
    """The last axis to whole vectors."""
    missing = -filters.shape[-1] % _native.PADDED_FILTERS
    return functional.pad(filters, (0, missing)) if missing else filters
