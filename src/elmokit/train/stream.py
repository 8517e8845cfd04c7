"""The order in which a corpus is read, as a function of the seed and of the place: no state.

A *place* is where a run stands in its text, two whole numbers; whoever knows it can go on from
there as if nothing had happened. Two ways to read: whole sentences, shuffled anew in every epoch
and put beside others of similar length; or a stream cut into lanes, each of which goes on where
its last window ended. Knows nothing about networks.

Shape letters: N words of a batch in one direction, U distinct words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from elmokit.engine.batching import IntArray, pack
from elmokit.errors import InputError
from elmokit.text.characters import BOS, EOS, Characters
from elmokit.text.vocabulary import UNKNOWN
from elmokit.train.corpus import Corpus, Split
from elmokit.train.recipe import Recipe

POOL = 8192
"""Sentences that are sorted by length together: enough for batches without gaps, few enough that
an epoch stays shuffled."""


class Place(NamedTuple):
    """Where the next batch comes from."""

    epoch: int = 0
    batch: int = 0


class Words(NamedTuple):
    """A batch, or a shard of one, before characters are looked up: numbers of the corpus's words.

    Rows are packed step by step. The second direction reads in its own order.
    """

    read_2N: IntArray
    next_2N: IntArray
    alive: IntArray


class Reader(Protocol):
    """One of the two ways."""

    carries: bool
    """Whether a batch continues the one before."""

    def shards(self, place: Place) -> list[list[int]] | list[range]:
        """What each shard of the batch at this place consists of."""

    def words(self, place: Place, part: Sequence[int]) -> Words:
        """One shard's words."""

    def count(self, place: Place) -> int:
        """N, over all shards."""

    def after(self, place: Place) -> Place:
        """The next place."""

    @property
    def epoch_words(self) -> int:
        """Predictions in one direction that an epoch makes."""


class Marks(NamedTuple):
    """The numbers of `<S>`, `</S>` and `<UNK>`."""

    begin: int
    end: int
    unknown: int

    @classmethod
    def of(cls, corpus: Corpus) -> Marks:
        """Their places in the vocabulary."""
        return cls(*(corpus.vocabulary.index_of(mark) for mark in (BOS, EOS, UNKNOWN)))


def reader_of(corpus: Corpus, recipe: Recipe) -> Reader:
    """The recipe's way to read the training text."""
    if recipe.text == "stream":
        return Stream(corpus.train, Marks.of(corpus), recipe.lanes, recipe.window, recipe.shards)
    return Sentences(corpus.train, Marks.of(corpus), recipe.batch, recipe.shards, seed=recipe.seed)


class Sentences:
    """Whole sentences, `<S> w1 … wn` to predict `w1 … wn </S>`, and the other way round."""

    carries = False

    def __init__(
        self, split: Split, marks: Marks, batch_words: int, shards: int, *, seed: int
    ) -> None:
        """Batches have about `batch_words` predictions in each direction."""
        if split.sentences < shards:
            raise InputError(
                f"the corpus has {split.sentences} sentences to learn from; expected one for each "
                f"of {shards} shards at least"
            )
        self._split, self._marks = split, marks
        self._batch_words, self._shards, self._seed = batch_words, shards, seed
        self._epoch = (-1, np.empty(0, np.int64))
        self._pool: tuple[tuple[int, int], list[list[int]]] = ((-1, -1), [])

    @property
    def epoch_words(self) -> int:
        """Every word, and every sentence's end."""
        return self._split.tokens + self._split.sentences

    def shards(self, place: Place) -> list[list[int]]:
        """Sentences of the batch, dealt out so that shards are alike."""
        pool, index = divmod(place.batch, POOL)
        batch = self._batches(place.epoch, pool)[index]
        return [batch[k :: self._shards] for k in range(self._shards)]

    def count(self, place: Place) -> int:
        """N, over all shards."""
        pool, index = divmod(place.batch, POOL)
        batch = self._batches(place.epoch, pool)[index]
        return int(self._split.lengths[batch].sum()) + len(batch)

    def after(self, place: Place) -> Place:
        """A batch is numbered by its pool and its place there; a pool has at most POOL batches."""
        pool, index = divmod(place.batch, POOL)
        if index + 1 < len(self._batches(place.epoch, pool)):
            return Place(place.epoch, place.batch + 1)
        if self._pool_end(pool) < self._split.sentences:
            return Place(place.epoch, (pool + 1) * POOL)
        return Place(place.epoch + 1, 0)

    def _pool_end(self, pool: int) -> int:
        """The last pool also takes what would be too little for one of its own."""
        end, everything = (pool + 1) * POOL, self._split.sentences
        return end if everything - end >= self._shards else everything

    def _batches(self, epoch: int, pool: int) -> list[list[int]]:
        if self._pool[0] != (epoch, pool):
            if self._epoch[0] != epoch:
                shuffled = np.random.default_rng([self._seed, epoch])
                self._epoch = epoch, shuffled.permutation(self._split.sentences)
            some = self._epoch[1][pool * POOL : self._pool_end(pool)]
            lengths = self._split.lengths[some].astype(np.int64) + 1
            order = np.argsort(-lengths, kind="stable")
            cuts = _cuts(lengths[order], self._batch_words, self._shards)
            batches = [part.tolist() for part in np.split(some[order], cuts)]
            np.random.default_rng([self._seed, epoch, pool]).shuffle(batches)  # type: ignore[arg-type,unused-ignore]
            self._pool = (epoch, pool), batches
        return self._pool[1]

    def words(self, place: Place, part: Sequence[int]) -> Words:
        """The sentences with these numbers, packed."""
        ids, lengths = self._split.gather(np.array(part, np.int64))
        return sentence_words(ids.astype(np.int64), lengths.astype(np.int64), self._marks)


def sentence_words(ids: IntArray, lengths: IntArray, marks: Marks) -> Words:
    """Sentences one after another, as both directions read and predict them."""
    spans = lengths + 1
    starts = np.cumsum(spans) - spans
    read, following = np.empty(int(spans.sum()), np.int64), np.empty(int(spans.sum()), np.int64)
    inside = np.ones(len(read), bool)
    inside[starts] = False
    read[starts], read[inside] = marks.begin, ids
    inside[:] = True
    inside[starts + lengths] = False
    following[starts + lengths], following[inside] = marks.end, ids
    packing = pack(spans)
    read, following = read[packing.source], following[packing.source]
    # From the end, what was to be predicted is read, and what was read is to be predicted.
    return Words(
        np.stack([read, following[packing.mirror]]),
        np.stack([following, read[packing.mirror]]),
        packing.alive,
    )


def _cuts(lengths: IntArray, most: int, least: int) -> list[int]:
    """Where to cut a list so that no part adds up to more than `most`, if it can be helped.

    Every part has `least` items, one for each shard.
    """
    cuts, room, first = [], most, 0
    for i, length in enumerate(lengths.tolist()):
        if length > room and i - first >= least:
            cuts.append(i)
            room, first = most, i
        room -= length
    if cuts and len(lengths) - first < least:
        cuts.pop()
    return cuts


class Stream:
    """The text as one long line `<S> … </S> <S> … </S>`, cut into lanes of equal length.

    The forward model reads each lane from its beginning, the backward model from its end.
    """

    carries = True

    def __init__(self, split: Split, marks: Marks, lanes: int, window: int, shards: int) -> None:
        """Every shard has the same number of lanes."""
        self._split, self._marks, self._window = split, marks, window
        self._lanes, self._shards = lanes, shards
        spans = split.lengths.astype(np.int64) + 2
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(spans)])
        self._lane = (int(self._starts[-1]) - 1) // lanes
        self._windows = self._lane // window
        if not self._windows:
            raise InputError(
                f"the corpus has {int(self._starts[-1]):,} words; {lanes} lanes of windows of "
                f"{window} words need {lanes * window + 1:,} at least"
            )

    @property
    def epoch_words(self) -> int:
        """All lanes, in whole windows."""
        return self._windows * self._window * self._lanes

    def shards(self, place: Place) -> list[range]:
        """Neighboring lanes."""
        each = self._lanes // self._shards
        return [range(k * each, (k + 1) * each) for k in range(self._shards)]

    def count(self, place: Place) -> int:
        """N, over all shards: always the same."""
        return self._lanes * self._window

    def after(self, place: Place) -> Place:
        """The next window."""
        last = place.batch + 1 == self._windows
        return Place(place.epoch + 1, 0) if last else Place(place.epoch, place.batch + 1)

    def words(self, place: Place, part: Sequence[int]) -> Words:
        """A window of these lanes."""
        window = self._window
        ahead, back = [], []
        for lane in part:
            first = lane * self._lane + place.batch * window
            ahead.append(self._text(first, first + window + 1))
            last = (lane + 1) * self._lane - place.batch * window
            back.append(self._text(last - window, last + 1)[::-1])
        both_2BT = np.stack([np.stack(ahead), np.stack(back)])
        read, following = both_2BT[:, :, :-1], both_2BT[:, :, 1:]
        step_by_step = (0, 2, 1)
        return Words(
            read.transpose(step_by_step).reshape(2, -1),
            following.transpose(step_by_step).reshape(2, -1),
            np.full(window, len(part), np.int64),
        )

    def _text(self, begin: int, end: int) -> IntArray:
        """The words between two places of the line, marks included."""
        first = int(np.searchsorted(self._starts, begin, side="right")) - 1
        last = int(np.searchsorted(self._starts, end, side="left"))
        ids, lengths = self._split.gather(np.arange(first, last))
        line = np.empty(int(self._starts[last] - self._starts[first]), np.int64)
        starts = self._starts[first:last] - self._starts[first]
        inside = np.ones(len(line), bool)
        inside[starts] = inside[starts + lengths + 1] = False
        line[starts], line[starts + lengths + 1] = self._marks.begin, self._marks.end
        line[inside] = ids
        offset = begin - int(self._starts[first])
        return line[offset : offset + end - begin]


def distinct(
    words: Words, corpus: Corpus, characters: Characters, unknown: int
) -> tuple[npt.NDArray[np.int16], IntArray, IntArray, IntArray]:
    """Characters (U, C) and lengths (U,) of the distinct words, where they stand, and targets."""
    numbers_U, index = np.unique(words.read_2N, return_inverse=True)
    ids_UC, characters_U = characters.encode([corpus.words[i] for i in numbers_U.tolist()])
    known = words.next_2N < len(corpus.vocabulary)
    targets_2N = np.where(known, words.next_2N, unknown)
    return ids_UC, characters_U, index.reshape(words.read_2N.shape), targets_2N
