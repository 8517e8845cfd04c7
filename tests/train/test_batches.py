"""The batches of a corpus: every sentence once, both directions, nothing lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.train.toy import PASSAGES, SENTENCES, STREAM, FakeSplit, toy_corpus

from elmokit.errors import InputError
from elmokit.text.characters import ByteEncoder
from elmokit.train import batches
from elmokit.train.batches import (
    BatchPosition,
    BatchReader,
    PassageBatches,
    SentenceBatches,
    StreamBatches,
    WordBatch,
    encode_distinct_words,
    make_batch_reader,
)
from elmokit.train.corpus import SpecialIds

MARKS = SpecialIds(begin=0, end=1, unknown=2)

texts = st.lists(st.lists(st.integers(3, 60), min_size=1, max_size=12), min_size=4, max_size=60)


@pytest.fixture(autouse=True, scope="module")
def small_pools() -> Iterator[None]:
    """So that a few sentences are several pools."""
    patch = pytest.MonkeyPatch()
    patch.setattr(batches, "POOL", 16)
    yield
    patch.undo()


def epoch(reader: BatchReader, number: int = 0) -> list[BatchPosition]:
    """The positions of an epoch; ends if the arithmetic does."""
    positions = [BatchPosition(number, 0)]
    while (position := reader.next_position(positions[-1])).epoch == number:
        assert len(positions) < 10_000
        positions.append(position)
    assert position == BatchPosition(number + 1, 0)
    return positions


def sentences(text: list[list[int]], batch: int, shards: int, seed: int = 0) -> SentenceBatches:
    return SentenceBatches(FakeSplit(text), MARKS, batch, shards, seed=seed)  # type: ignore[arg-type]


def rows(words: WordBatch) -> list[list[tuple[int, ...]]]:
    """For each direction and rank, the words read and then the words to predict."""
    found = []
    starts = np.cumsum(words.alive) - words.alive
    for side in range(2):
        for rank in range(int(words.alive[0])):
            at = [
                start + rank for start, live in zip(starts, words.alive, strict=True) if rank < live
            ]
            found.append(
                [
                    tuple(words.inputs_2N[side, at].tolist()),
                    tuple(words.targets_2N[side, at].tolist()),
                ]
            )
    return found


# -- whole sentences -----------------------------------------------------------------------------


@given(texts, st.integers(1, 60), st.integers(1, 4), st.integers(0, 3))
def test_every_sentence_once(text: list[list[int]], batch: int, shards: int, number: int) -> None:
    reader = sentences(text, batch, shards)
    read: list[int] = []
    count = 0
    for position in epoch(reader, number):
        parts = reader.shards(position)
        assert len(parts) == shards
        assert all(parts), "no shard is empty"
        own = [i for part in parts for i in part]
        lengths = sorted(len(text[i]) + 1 for i in own)
        assert reader.count_tokens(position) == sum(lengths)
        # The last batch of a pool takes sentences that are too few for all shards.
        assert sum(lengths[shards - 1 :]) <= batch or len(own) < 2 * shards
        count += sum(lengths)
        read += own
    assert sorted(read) == list(range(len(text)))
    assert count == reader.epoch_tokens


@given(texts, st.integers(0, 5), st.data())
def test_a_place_says_all(text: list[list[int]], seed: int, data: st.DataObject) -> None:
    """A reader that has read elsewhere, or nothing, reads the same at a position."""
    reader = sentences(text, 30, 2, seed)
    positions = epoch(reader) + epoch(reader, 1)
    for position in data.draw(st.lists(st.sampled_from(positions), min_size=1, max_size=5)):
        assert sentences(text, 30, 2, seed).shards(position) == reader.shards(position)


def test_epochs_and_seeds_differ() -> None:
    text = [[3 + i % 5] * (1 + i % 4) for i in range(60)]

    def order(seed: int, number: int) -> list[list[list[int]]]:
        reader = sentences(text, 20, 2, seed)
        return [reader.shards(position) for position in epoch(reader, number)]

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


@given(texts, st.data())
def test_both_directions(text: list[list[int]], data: st.DataObject) -> None:
    part = data.draw(st.lists(st.sampled_from(range(len(text))), min_size=1, unique=True))
    words = sentences(text, 30, 1).read(BatchPosition(), part)
    expected: Counter[object] = Counter()
    for i in part:
        own = text[i]
        expected[(0, *own), (*own, 1)] += 1
        expected[(1, *own[::-1]), (*own[::-1], 0)] += 1
    assert Counter(tuple(row) for row in rows(words)) == expected
    forward = rows(words)[: len(part)]
    assert {row[0][0] for row in forward} == {0}, "the first direction begins at the beginning"
    assert (np.diff(words.alive) <= 0).all()


def test_few_sentences() -> None:
    with pytest.raises(InputError, match="3 sentences"):
        sentences([[3], [4], [5]], 10, 4)
    reader = sentences([[3], [4], [5]], 1, 3)
    assert epoch(reader) == [BatchPosition(0, 0)], "a shard has a sentence, if the batch is small"


# -- passages ------------------------------------------------------------------------------------


def passages(
    text: list[list[int]], batch: int, shards: int, longest: int, seed: int = 0
) -> PassageBatches:
    return PassageBatches(FakeSplit(text), MARKS, batch, shards, seed=seed, longest=longest)  # type: ignore[arg-type]


def read_epoch(reader: BatchReader, number: int) -> Iterator[tuple[BatchPosition, WordBatch]]:
    for position in epoch(reader, number):
        for shard in reader.shards(position):
            yield position, reader.read(position, shard)


@given(texts, st.integers(1, 60), st.integers(1, 4), st.integers(1, 9), st.integers(0, 3))
def test_passages_are_the_whole_text_once(
    text: list[list[int]], batch: int, shards: int, longest: int, number: int
) -> None:
    reader, tokens = passages(text, batch, shards, longest), Counter[BatchPosition]()
    forward: list[tuple[int, ...]] = []
    for position, words in read_epoch(reader, number):
        found = rows(words)
        half = len(found) // 2
        for (read, following), (back, before) in zip(found[:half], found[half:], strict=True):
            assert read[0] == 0
            assert following[-1] == 1
            assert read[1:] == following[:-1]
            assert back == following[::-1]
            assert before == read[::-1]
            forward.append((*read, 1))
            assert forward[-1].count(0) <= longest
        tokens[position] += words.inputs_2N.shape[1]
    assert all(reader.count_tokens(position) == n for position, n in tokens.items())
    assert Counter(s for p in forward for s in split_sentences(p)) == Counter(map(tuple, text))
    everything = ",".join(map(str, [*line(text), ""]))
    assert all(",".join(map(str, [*passage, ""])) in everything for passage in forward)


def split_sentences(passage: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The sentences between the marks of a passage."""
    ends = [i for i, word in enumerate(passage) if word == 1]
    begins = [i for i, word in enumerate(passage) if word == 0]
    return [passage[begin + 1 : end] for begin, end in zip(begins, ends, strict=True)]


@given(texts, st.integers(1, 40), st.integers(1, 3), st.integers(0, 3))
def test_passages_of_one_sentence_are_sentences(
    text: list[list[int]], batch: int, shards: int, number: int
) -> None:
    def contents(reader: BatchReader) -> Counter[object]:
        return Counter(tuple(row) for _, words in read_epoch(reader, number) for row in rows(words))

    reader = passages(text, batch, shards, longest=1)
    assert contents(reader) == contents(sentences(text, batch, shards))
    assert reader.epoch_tokens == sentences(text, batch, shards).epoch_tokens


def test_passages_of_all_lengths() -> None:
    text = [[3 + i % 7] * (1 + i % 3) for i in range(600)]
    reader = passages(text, 200, 2, longest=4)
    counts = [Counter[int](), Counter[int]()]
    for number in (0, 1):
        for _, words in read_epoch(reader, number):
            found = rows(words)
            counts[number].update(read.count(0) for read, _ in found[: len(found) // 2])
        total = sum(reader.count_tokens(position) for position in epoch(reader, number))
        assert total == pytest.approx(reader.epoch_tokens, rel=0.05)
        assert sorted(counts[number]) == [1, 2, 3, 4]
        assert min(counts[number].values()) > 30
    assert counts[0] != counts[1], "cut anew in every epoch"


@given(texts, st.integers(0, 5), st.data())
def test_a_place_says_all_of_passages(
    text: list[list[int]], seed: int, data: st.DataObject
) -> None:
    reader = passages(text, 30, 2, 3, seed)
    positions = epoch(reader) + epoch(reader, 1)
    for position in data.draw(st.lists(st.sampled_from(positions), min_size=1, max_size=5)):
        shard = reader.shards(position)[1]
        fresh = passages(text, 30, 2, 3, seed)
        for a, b in zip(fresh.read(position, shard), reader.read(position, shard), strict=True):
            np.testing.assert_array_equal(a, b)


# -- a stream ------------------------------------------------------------------------------------


def line(text: list[list[int]]) -> list[int]:
    return [word for sentence in text for word in (0, *sentence, 1)]


@given(texts, st.integers(1, 3), st.integers(1, 3), st.integers(1, 7))
def test_lanes_and_windows(text: list[list[int]], per_shard: int, shards: int, window: int) -> None:
    lanes, everything = per_shard * shards, line(text)
    length = (len(everything) - 1) // lanes
    windows = length // window

    def make() -> StreamBatches:
        return StreamBatches(FakeSplit(text), MARKS, lanes, window, shards)  # type: ignore[arg-type]

    if not windows:
        with pytest.raises(InputError, match="lanes"):
            make()
        return
    reader = make()
    positions = epoch(reader)
    assert len(positions) == windows
    assert reader.epoch_tokens == sum(reader.count_tokens(position) for position in positions)
    lanes_read: list[list[int]] = [[] for _ in range(2 * lanes)]
    lanes_next: list[list[int]] = [[] for _ in range(2 * lanes)]
    for position in positions:
        parts = reader.shards(position)
        assert [lane for part in parts for lane in part] == list(range(lanes))
        for part in parts:
            assert len(part) == per_shard
            words = reader.read(position, part)
            assert words.alive.tolist() == [per_shard] * window
            for k, (read, following) in enumerate(rows(words)):
                lane = part[k % per_shard] + lanes * (k // per_shard)
                lanes_read[lane] += read
                lanes_next[lane] += following
    for lane in range(lanes):
        first, last = lane * length, (lane + 1) * length
        size = windows * window
        assert lanes_read[lane] == everything[first : first + size]
        assert lanes_next[lane] == everything[first + 1 : first + size + 1]
        back = everything[last - size : last + 1][::-1]
        assert lanes_read[lanes + lane] == back[:-1]
        assert lanes_next[lanes + lane] == back[1:]


# -- from a corpus -------------------------------------------------------------------------------


def test_readers_of_a_corpus(tmp_path_factory: pytest.TempPathFactory) -> None:
    corpus = toy_corpus(tmp_path_factory.mktemp("toy"), sentences=40, size=9)
    assert not make_batch_reader(corpus, SENTENCES).carries_state
    assert isinstance(make_batch_reader(corpus, PASSAGES), PassageBatches)
    reader = make_batch_reader(corpus, STREAM)
    assert reader.carries_state
    assert corpus.special_ids == MARKS
    words = reader.read(BatchPosition(), reader.shards(BatchPosition())[0])
    ids_UC, characters_U, index_2N, targets_2N = encode_distinct_words(
        words, corpus, ByteEncoder(12)
    )
    vocabulary = list(corpus.vocabulary)
    assert len(vocabulary) == 9 < len(corpus.words)
    assert len(np.unique(ids_UC, axis=0)) == len(ids_UC), "each word once"
    expected, lengths = ByteEncoder(12).encode(
        [corpus.words[i] for i in words.inputs_2N.ravel().tolist()]
    )
    assert (ids_UC[index_2N].reshape(expected.shape) == expected).all()
    assert (characters_U[index_2N].ravel() == lengths).all()
    for target, word in zip(targets_2N.ravel(), words.targets_2N.ravel(), strict=True):
        spelled = corpus.words[word]
        assert vocabulary[target] == (spelled if spelled in vocabulary else "<UNK>")
    assert (targets_2N == 2).any()
