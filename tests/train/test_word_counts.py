"""Counting words, and the vocabulary and word list made from the counts."""

from __future__ import annotations

import numpy as np

from elmokit.train.word_counts import WordCounts, by_frequency, make_vocabulary, make_word_list


def test_counting_forgets_the_rarest() -> None:
    counts = WordCounts(3)
    counts.add(list("abcdef"), np.array([5, 4, 3, 2, 1, 1]))
    assert len(counts) == 6, "twice the limit is kept"
    counts.add(["g"], np.array([1]))
    assert counts == {"a": 5, "b": 4, "c": 3}
    counts.add(["g", "a", "h"], np.array([2, 1, 0]))
    assert counts == {"a": 6, "b": 4, "c": 3, "g": 2}
    counts.subtract(["a", "b", "x"], np.array([1, 4, 1]))
    assert counts == {"a": 5, "c": 3, "g": 2}


def test_counting_treats_ties_alike() -> None:
    counts = WordCounts(2)
    counts.add(list("abcde"), np.array([2, 1, 1, 1, 1]))
    assert counts == {"a": 2}


def test_order_of_words() -> None:
    counts = {"b": 2, "é": 1, "a": 2, "Z": 1, "<UNK>": 9, "c": 7}
    ordered = by_frequency(counts)
    assert ordered == ["c", "a", "b", "Z", "é"]
    vocabulary = make_vocabulary(ordered, counts, 5, None)
    assert list(vocabulary) == ["<S>", "</S>", "<UNK>", "c", "a"]
    assert make_word_list(vocabulary, ordered, ["q", "é", "<S>"], 100)[5:] == ["b", "Z", "é", "q"]
    assert make_word_list(vocabulary, ordered, ["q", "é"], 8)[5:] == ["b", "é", "q"]
    assert make_word_list(vocabulary, ordered, ["q", "é"], 6)[5:] == ["é"]
    assert make_word_list(vocabulary, ordered, [], 2) == list(vocabulary)
