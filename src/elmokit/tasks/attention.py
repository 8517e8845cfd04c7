"""Attention over the words of a sentence, and pooling of them; padding never takes part.

Every sentence has at least one word, so that no softmax is over nothing.

Shape letters: B sentences, T and U words of two sentences, H size of a word's vector.
"""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the last dimension where the mask is true, and zero elsewhere."""
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


def attend(scores_BTU: Tensor, values_BUH: Tensor, mask_BU: Tensor) -> Tensor:
    """Return for each of T words the average of U values, weighted by its scores: (B, T, H)."""
    return masked_softmax(scores_BTU, mask_BU[:, None, :]) @ values_BUH


def masked_mean(x_BTH: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the mean over the words of each sentence: (B, H)."""
    kept = mask_BT[:, :, None].to(x_BTH)
    return (x_BTH * kept).sum(dim=1) / kept.sum(dim=1)


def masked_max(x_BTH: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the maximum over the words of each sentence: (B, H)."""
    return x_BTH.masked_fill(~mask_BT[:, :, None], -torch.inf).amax(dim=1)
