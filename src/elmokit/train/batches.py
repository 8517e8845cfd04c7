"""The batches of a corpus, as a function of the seed and of the position: no hidden state.

A *position* is two whole numbers, the epoch and the batch; a run that knows its position can go on
from there as if it had never stopped. There are three ways to read a corpus: whole sentences, or
passages of a few consecutive sentences, shuffled in every epoch and batched with others of similar
length; or one stream of text cut into lanes, each of which goes on where its last window ended.
Knows nothing about networks.

Shape letters: N words of a batch in one direction, U distinct words, B lanes, T steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from elmokit.engine.batching import IntArray, pack
from elmokit.errors import InputError
from elmokit.text.characters import CharacterEncoder
from elmokit.train.corpus import Corpus, SpecialIds, Split
from elmokit.train.recipe import Recipe

POOL = 8192
"""Sentences that are sorted by length together: enough for batches with little padding, few enough
that an epoch stays shuffled."""


class BatchPosition(NamedTuple):
    """The position of a batch in a corpus."""

    epoch: int = 0
    batch: int = 0


class WordBatch(NamedTuple):
    """A batch, or a shard of one, as word ids of the corpus.

    Rows are packed step by step. The second direction reads in its own order.
    """

    inputs_2N: IntArray
    """Word read, for each direction and row."""
    targets_2N: IntArray
    """Word to predict, for each direction and row."""
    alive: IntArray
    """(T,) number of sentences or lanes that have a word at each step."""


class BatchReader(Protocol):
    """Reads the batches of a corpus."""

    carries_state: bool
    """Whether a batch continues the text of the batch before."""

    def shards(self, position: BatchPosition) -> list[list[int]] | list[range]:
        """Return the sentences or lanes of each shard of a batch."""

    def read(self, position: BatchPosition, shard: Sequence[int]) -> WordBatch:
        """Return the words of one shard of a batch."""

    def count_tokens(self, position: BatchPosition) -> int:
        """Return the number of predictions in one direction, over all shards of a batch."""

    def next_position(self, position: BatchPosition) -> BatchPosition:
        """Return the position after another."""

    @property
    def epoch_tokens(self) -> int:
        """Number of predictions in one direction per epoch."""


def make_batch_reader(corpus: Corpus, recipe: Recipe) -> BatchReader:
    """Return the reader that a recipe asks for, over the training text of a corpus."""
    train, ids = corpus.train, corpus.special_ids
    if recipe.text == "stream":
        return StreamBatches(train, ids, recipe.lanes, recipe.window, recipe.shards)
    if recipe.text == "passages":
        return PassageBatches(
            train, ids, recipe.batch, recipe.shards, seed=recipe.seed, longest=recipe.passage
        )
    return SentenceBatches(train, ids, recipe.batch, recipe.shards, seed=recipe.seed)


class SentenceBatches:
    """Batches of whole sentences: `<S> w1 … wn` predicts `w1 … wn </S>`, and in reverse."""

    carries_state = False

    def __init__(
        self, split: Split, special_ids: SpecialIds, batch_words: int, shards: int, *, seed: int
    ) -> None:
        """Prepare batches of about `batch_words` predictions in each direction."""
        if split.sentences < shards:
            raise InputError(
                f"the corpus has {split.sentences} sentences to train on; expected at least one "
                f"for each of {shards} shards"
            )
        self._split, self._special_ids = split, special_ids
        self._batch_words, self._shards, self._seed = batch_words, shards, seed
        self._epoch = (-1, np.empty(0, np.int64))
        self._pool: tuple[tuple[int, int], list[list[int]]] = ((-1, -1), [])

    @property
    def epoch_tokens(self) -> int:
        """Number of words and ends of sentences in the corpus."""
        return self._split.tokens + self._split.sentences

    def shards(self, position: BatchPosition) -> list[list[int]]:
        """Return the sentences of each shard, dealt out so that shards are alike."""
        batch = self._batch(position)
        return [batch[k :: self._shards] for k in range(self._shards)]

    def count_tokens(self, position: BatchPosition) -> int:
        """Return the number of predictions in one direction, over all shards of a batch."""
        return int(self._count_predictions(np.array(self._batch(position), np.int64)).sum())

    def next_position(self, position: BatchPosition) -> BatchPosition:
        """Return the next batch of the pool, the next pool, or the next epoch.

        The number of a batch is that of its pool times `POOL` plus its index in the pool, which has
        at most `POOL` batches.
        """
        pool, index = divmod(position.batch, POOL)
        if index + 1 < len(self._batches(position.epoch, pool)):
            return BatchPosition(position.epoch, position.batch + 1)
        if self._pool_end(pool) < len(self._epoch[1]):
            return BatchPosition(position.epoch, (pool + 1) * POOL)
        return BatchPosition(position.epoch + 1, 0)

    def read(self, position: BatchPosition, shard: Sequence[int]) -> WordBatch:
        """Return the sentences with these numbers, packed."""
        ids, lengths = self._split.gather(np.array(shard, np.int64))
        return pack_sentences(ids.astype(np.int64), lengths.astype(np.int64), self._special_ids)

    def _shuffle(self, rng: np.random.Generator) -> IntArray:
        """Return all sentences in the order of an epoch."""
        return rng.permutation(self._split.sentences)

    def _count_predictions(self, sentences: IntArray) -> IntArray:
        """Return the number of predictions of each sentence in one direction."""
        return self._split.lengths[sentences].astype(np.int64) + 1

    def _batch(self, position: BatchPosition) -> list[int]:
        pool, index = divmod(position.batch, POOL)
        return self._batches(position.epoch, pool)[index]

    def _pool_end(self, pool: int) -> int:
        """Return the end of a pool; the last pool also takes a rest too small for all shards."""
        end, sentences = (pool + 1) * POOL, len(self._epoch[1])
        return end if sentences - end >= self._shards else sentences

    def _batches(self, epoch: int, pool: int) -> list[list[int]]:
        """Return the batches of a pool; the last pool and epoch asked for are cached."""
        if self._epoch[0] != epoch:
            self._epoch = epoch, self._shuffle(np.random.default_rng([self._seed, epoch]))
        if self._pool[0] != (epoch, pool):
            sentences = self._epoch[1][pool * POOL : self._pool_end(pool)]
            lengths = self._count_predictions(sentences)
            order = np.argsort(-lengths, kind="stable")
            cuts = _find_cuts(lengths[order], self._batch_words, self._shards)
            batches = [batch.tolist() for batch in np.split(sentences[order], cuts)]
            np.random.default_rng([self._seed, epoch, pool]).shuffle(batches)  # type: ignore[arg-type,unused-ignore]
            self._pool = (epoch, pool), batches
        return self._pool[1]


class PassageBatches(SentenceBatches):
    """Batches of passages: consecutive sentences, read one after another as one long sentence.

    `<S> a b </S> <S> c` predicts `a b </S> <S> c </S>`, and in reverse. The corpus is cut into
    passages anew in every epoch, at random, so that any sentence may be the first of one and start
    from the zero state. A passage may reach from one document into the next.
    """

    def __init__(
        self,
        split: Split,
        special_ids: SpecialIds,
        batch_words: int,
        shards: int,
        *,
        seed: int,
        longest: int,
    ) -> None:
        """Prepare batches of passages of 1 to `longest` sentences, all equally likely."""
        super().__init__(split, special_ids, batch_words, shards, seed=seed)
        self._longest = longest if split.sentences >= shards * longest else 1
        self._starts = np.empty(0, np.int64)  # first sentence of each passage, and the end
        spans = split.lengths.astype(np.int64) + 2
        self._offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(spans)])

    @property
    def epoch_tokens(self) -> int:
        """Number of words and marks in the corpus, without one per passage of mean length."""
        sentences = self._split.sentences
        return int(self._offsets[-1]) - 2 * sentences // (self._longest + 1)

    def read(self, position: BatchPosition, shard: Sequence[int]) -> WordBatch:
        """Return the passages with these numbers, packed."""
        self._batch(position)  # cuts the epoch of the position into passages
        ranges = [np.arange(self._starts[i], self._starts[i + 1]) for i in shard]
        ids, lengths = self._split.gather(np.concatenate(ranges))
        return pack_passages(
            ids.astype(np.int64),
            lengths.astype(np.int64),
            np.array(list(map(len, ranges)), np.int64),
            self._special_ids,
        )

    def _shuffle(self, rng: np.random.Generator) -> IntArray:
        """Cut the corpus into passages; return their numbers in the order of an epoch."""
        sentences = self._split.sentences
        ends = np.cumsum(rng.integers(1, self._longest, sentences, endpoint=True))
        ends = ends[: int(np.searchsorted(ends, sentences))]
        self._starts = np.concatenate([[0], ends, [sentences]])
        return rng.permutation(len(self._starts) - 1)

    def _count_predictions(self, passages: IntArray) -> IntArray:
        """Return the number of predictions of each passage in one direction."""
        first, after = self._starts[passages], self._starts[passages + 1]
        counts: IntArray = self._offsets[after] - self._offsets[first] - 1
        return counts


def pack_sentences(ids: IntArray, lengths: IntArray, special_ids: SpecialIds) -> WordBatch:
    """Return sentences as both directions read and predict them: passages of one sentence each."""
    return pack_passages(ids, lengths, np.ones(len(lengths), np.int64), special_ids)


def pack_passages(
    ids: IntArray, lengths: IntArray, counts: IntArray, special_ids: SpecialIds
) -> WordBatch:
    """Return passages as both directions read and predict them.

    Args:
        ids: Word ids of all sentences one after another.
        lengths: Words per sentence.
        counts: Sentences per passage.
        special_ids: Ids of the marks to put around each sentence.
    """
    text = add_marks(ids, lengths, special_ids)
    after = np.cumsum(lengths + 2)[np.cumsum(counts) - 1]  # the end of each passage
    spans = np.diff(after, prepend=0)
    is_input, is_target = np.ones(len(text), bool), np.ones(len(text), bool)
    is_input[after - 1] = is_target[after - spans] = False
    packing = pack(spans - 1)
    inputs, targets = text[is_input][packing.source], text[is_target][packing.source]
    # Backward, what the forward direction predicts is read, and what it reads is predicted.
    return WordBatch(
        np.stack([inputs, targets[packing.mirror]]),
        np.stack([targets, inputs[packing.mirror]]),
        packing.alive,
    )


def add_marks(ids: IntArray, lengths: IntArray, special_ids: SpecialIds) -> IntArray:
    """Return sentences one after another, each between its two marks."""
    ends = np.cumsum(lengths + 2)
    text = np.empty(int(ends[-1]), np.int64)
    is_word = np.ones(len(text), bool)
    for positions, mark in ((ends - lengths - 2, special_ids.begin), (ends - 1, special_ids.end)):
        text[positions], is_word[positions] = mark, False
    text[is_word] = ids
    return text


def _find_cuts(lengths: IntArray, max_words: int, min_sentences: int) -> list[int]:
    """Return where to cut a list of sentences into batches.

    Every batch has at least `min_sentences`, one for each shard, and at most `max_words` words
    where that is possible.
    """
    cuts, room, first = [], max_words, 0
    for i, length in enumerate(lengths.tolist()):
        if length > room and i - first >= min_sentences:
            cuts.append(i)
            room, first = max_words, i
        room -= length
    if cuts and len(lengths) - first < min_sentences:
        cuts.pop()
    return cuts


class StreamBatches:
    """Windows of one long text `<S> … </S> <S> … </S>`, cut into lanes of equal length.

    The forward model reads each lane from its start, the backward model from its end.
    """

    carries_state = True

    def __init__(
        self, split: Split, special_ids: SpecialIds, lanes: int, window: int, shards: int
    ) -> None:
        """Cut the text into lanes; every shard has the same number of them."""
        self._split, self._special_ids, self._window = split, special_ids, window
        self._lanes, self._shards = lanes, shards
        spans = split.lengths.astype(np.int64) + 2
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(spans)])
        self._lane_words = (int(self._starts[-1]) - 1) // lanes
        self._windows = self._lane_words // window
        if not self._windows:
            raise InputError(
                f"the corpus has {int(self._starts[-1]):,} words and marks; {lanes} lanes of "
                f"windows of {window} words need at least {lanes * window + 1:,}"
            )

    @property
    def epoch_tokens(self) -> int:
        """Number of words in all complete windows."""
        return self._windows * self._window * self._lanes

    def shards(self, position: BatchPosition) -> list[range]:
        """Return the lanes of each shard, which are neighbors."""
        lanes = self._lanes // self._shards
        return [range(k * lanes, (k + 1) * lanes) for k in range(self._shards)]

    def count_tokens(self, position: BatchPosition) -> int:
        """Return the number of predictions in one direction, the same for every batch."""
        return self._lanes * self._window

    def next_position(self, position: BatchPosition) -> BatchPosition:
        """Return the position of the next window."""
        if position.batch + 1 == self._windows:
            return BatchPosition(position.epoch + 1, 0)
        return BatchPosition(position.epoch, position.batch + 1)

    def read(self, position: BatchPosition, shard: Sequence[int]) -> WordBatch:
        """Return one window of these lanes."""
        window = self._window
        forward, backward = [], []
        for lane in shard:
            first = lane * self._lane_words + position.batch * window
            forward.append(self._text(first, first + window + 1))
            last = (lane + 1) * self._lane_words - position.batch * window
            backward.append(self._text(last - window, last + 1)[::-1])
        both_2BT = np.stack([np.stack(forward), np.stack(backward)])
        inputs_2BT, targets_2BT = both_2BT[:, :, :-1], both_2BT[:, :, 1:]
        by_step = (0, 2, 1)
        return WordBatch(
            inputs_2BT.transpose(by_step).reshape(2, -1),
            targets_2BT.transpose(by_step).reshape(2, -1),
            np.full(window, len(shard), np.int64),
        )

    def _text(self, begin: int, end: int) -> IntArray:
        """Return the words between two offsets of the long text, with marks."""
        first = int(np.searchsorted(self._starts, begin, side="right")) - 1
        last = int(np.searchsorted(self._starts, end, side="left"))
        ids, lengths = self._split.gather(np.arange(first, last))
        text = add_marks(ids.astype(np.int64), lengths.astype(np.int64), self._special_ids)
        offset = begin - int(self._starts[first])
        return text[offset : offset + end - begin]


def encode_distinct_words(
    batch: WordBatch, corpus: Corpus, characters: CharacterEncoder
) -> tuple[npt.NDArray[np.int16], IntArray, IntArray, IntArray]:
    """Look up the characters of a batch, each distinct word once, and its prediction targets.

    Returns:
        Character ids (U, C) and number of characters (U,) of the distinct words, the row of each
        input word in that table (2, N), and the target of each input word in the vocabulary (2, N).
    """
    word_ids_U, index = np.unique(batch.inputs_2N, return_inverse=True)
    ids_UC, characters_U = characters.encode([corpus.words[i] for i in word_ids_U.tolist()])
    in_vocabulary = batch.targets_2N < len(corpus.vocabulary)
    targets_2N = np.where(in_vocabulary, batch.targets_2N, corpus.special_ids.unknown)
    return ids_UC, characters_U, index.reshape(batch.inputs_2N.shape), targets_2N
