"""AllenNLP's `add_sentence_boundary_token_ids` and `remove_sentence_boundaries` (`nn/util.py`).

Shape letters: B sentences, T positions of the longest, D numbers per position.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elmokit.errors import InputError


def add_sentence_boundary_token_ids(
    tensor: Tensor, mask: Tensor, sentence_begin_token: Any, sentence_end_token: Any
) -> tuple[Tensor, Tensor]:
    """Return the tensor (B, T+2) or (B, T+2, D) and its mask (B, T+2), with marks around sentences.

    Args:
        tensor: Ids (B, T), or character ids or vectors (B, T, D); words first, then padding.
        mask: Where there is a word, (B, T).
        sentence_begin_token: What to put before each sentence: a number, or a tensor (D,).
        sentence_end_token: What to put after each sentence.
    """
    if tensor.dim() not in (2, 3):
        raise InputError(
            f"tensor has the shape {tuple(tensor.shape)}; expected (B, T) or (B, T, D)"
        )
    rows, steps = tensor.shape[:2]
    lengths_B = mask.bool().sum(dim=1)
    marked = tensor.new_zeros(rows, steps + 2, *tensor.shape[2:])
    marked[:, 1:-1] = tensor
    marked[:, 0] = _like(sentence_begin_token, tensor)
    marked[torch.arange(rows, device=tensor.device), lengths_B + 1] = _like(
        sentence_end_token, tensor
    )
    return marked, _positions(steps + 2, lengths_B + 2)


def remove_sentence_boundaries(tensor: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors (B, T, D) and mask (B, T) without the sentence marks; padding becomes zeros.

    Args:
        tensor: Vectors (B, T+2, D), with the marks.
        mask: Where there is a word or a mark, (B, T+2).
    """
    kept_BT = _positions(tensor.shape[1] - 2, mask.bool().sum(dim=1) - 2)
    return tensor[:, 1:-1].masked_fill(~kept_BT[..., None], 0.0), kept_BT


def _positions(steps: int, lengths_B: Tensor) -> Tensor:
    """Return the mask (B, T) of sentences with these lengths."""
    return torch.arange(steps, device=lengths_B.device) < lengths_B[:, None]


def _like(token: Any, tensor: Tensor) -> Any:
    return token.to(tensor) if isinstance(token, Tensor) else token
