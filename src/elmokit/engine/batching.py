"""Sentences of different lengths side by side, without padding.

A *packing* lays the words of a batch out step by step: first the first word of every sentence,
then every second word, …; the longest sentence first, so that the sentences that still have words
at step t are the first `alive[t]`. A *plan* cuts a list of sentences into batches of similar
lengths and bounded size. Knows nothing about what is computed.

Shape letters: B sentences, T steps, N = all words of the batch, sentence marks included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

BATCH_WORDS = 2048
"""Words in a batch: enough to keep the matrix products busy, few enough to bound the memory."""


@dataclass(frozen=True)
class Packing:
    """Where each word of a batch lies. Ranks count sentences from the longest to the shortest."""

    order: IntArray
    """(B,) the place in the batch of each rank."""
    alive: IntArray
    """(T,) how many sentences have a word at each step, falling."""
    mirror: IntArray
    """(N,) for each row, the row of the same sentence as far from its end: reads it backward."""
    source: IntArray
    """(N,) for each row, its place in the sentences written one after another."""

    @property
    def rows(self) -> int:
        """N."""
        return len(self.mirror)

    def unpack(self, packed: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(…, N, D) in packed order to (…, N, D) in the order of the sentences."""
        if len(self.order) == 1:
            return packed  # one sentence lies in order already, and may be long
        out = np.empty_like(packed)
        out[..., self.source, :] = packed
        return out


def pack(lengths: Sequence[int] | IntArray) -> Packing:
    """Lay out sentences of these lengths, all at least 1."""
    lengths_B = np.asarray(lengths, np.int64)
    order = np.argsort(-lengths_B, kind="stable")
    sorted_B = lengths_B[order]
    steps = int(sorted_B[0])
    alive = np.searchsorted(-sorted_B, -np.arange(steps), side="left")
    first_row = np.cumsum(alive) - alive

    step = np.repeat(np.arange(steps), alive)
    rank = np.arange(len(step)) - first_row[step]
    mirror = first_row[sorted_B[rank] - 1 - step] + rank
    starts = (np.cumsum(lengths_B) - lengths_B)[order]
    return Packing(order, alive, mirror, starts[rank] + step)


def plan(lengths: Sequence[int], batch_words: int = BATCH_WORDS) -> list[list[int]]:
    """Cut sentences into batches: indices, similar lengths together, at most `batch_words` each.

    A longer sentence is a batch of its own.
    """
    batches: list[list[int]] = []
    room = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if not batches or lengths[index] > room:
            batches.append([])
            room = batch_words
        batches[-1].append(index)
        room -= lengths[index]
    return batches
