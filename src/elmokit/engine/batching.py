"""Batches of sentences of different lengths, without padding.

`pack` lays out the words of a batch step by step: the first word of every sentence, then the second
word of every sentence, and so on. Longer sentences come first, so that the sentences that still
have words at step t are the first `alive[t]`. `plan_batches` divides a list of sentences into
batches of similar lengths and bounded size. Nothing here depends on what is computed.

Shape letters: B sentences, T steps, N words of the batch, sentence marks included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

BATCH_WORDS = 2048
"""Words per batch: enough to keep the matrix products busy, few enough to bound the memory."""


@dataclass(frozen=True)
class Packing:
    """The layout of a packed batch. A sentence's rank is its position from longest to shortest."""

    order: IntArray
    """(B,) index in the batch of the sentence of each rank."""
    alive: IntArray
    """(T,) number of sentences that have a word at each step; never increases."""
    mirror: IntArray
    """(N,) row that is as far from the sentence's end as this row is from its beginning.

    Indexing with it reverses every sentence.
    """
    source: IntArray
    """(N,) index of each row in the concatenation of the sentences."""

    @property
    def rows(self) -> int:
        """Number of rows N."""
        return len(self.mirror)

    @property
    def rows_of_words(self) -> IntArray:
        """(N,) packed row of each word of the concatenation of the sentences."""
        rows = np.empty_like(self.source)
        rows[self.source] = np.arange(len(rows))
        return rows

    def unpack(self, packed: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Reorder (…, N, D) from packed order to sentence after sentence."""
        if len(self.order) == 1:
            return packed  # a single sentence is in order already, and may be long
        out = np.empty_like(packed)
        out[..., self.source, :] = packed
        return out


def pack(lengths: Sequence[int] | IntArray) -> Packing:
    """Return the layout of sentences of these lengths, which are at least 1."""
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


def plan_batches(
    lengths: Sequence[int], batch_words: int = BATCH_WORDS, batch_sentences: int | None = None
) -> list[list[int]]:
    """Divide sentences into batches of similar lengths, as lists of sentence indices.

    A batch has at most `batch_words` words; a longer sentence is a batch of its own. A batch of
    `batch_sentences` is complete with half as many words, unless a rest of fewer than half as many
    sentences fits.
    """
    batches: list[list[int]] = []
    room = 0
    left, words_left = len(lengths), sum(lengths)

    def is_complete() -> bool:
        if batch_sentences is None or len(batches[-1]) < batch_sentences:
            return False
        return 2 * room <= batch_words and (2 * left >= batch_sentences or words_left > room)

    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if not batches or lengths[index] > room or is_complete():
            batches.append([])
            room = batch_words
        batches[-1].append(index)
        room -= lengths[index]
        left, words_left = left - 1, words_left - lengths[index]
    return batches


def windows(sentences: Iterable[Sequence[str]], window_words: int) -> Iterator[list[Sequence[str]]]:
    """Yield consecutive sentences in lists of about `window_words` words, marks included."""
    window: list[Sequence[str]] = []
    room = window_words
    for sentence in sentences:
        window.append(sentence)
        room -= len(sentence) + 2
        if room <= 0:
            yield window
            window, room = [], window_words
    if window:
        yield window


def chunk_steps(alive_T: IntArray, rows_at_once: int) -> Iterator[list[int]]:
    """Group the steps into runs of at most `rows_at_once` rows, with at least one step each."""
    run: list[int] = []
    for live in alive_T.tolist():
        if run and sum(run) + live > rows_at_once:
            yield run
            run = []
        run.append(live)
    if run:
        yield run
