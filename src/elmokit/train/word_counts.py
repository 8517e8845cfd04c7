"""Counting words in bounded memory, and making the vocabulary and the word list of a corpus.

A biLM reads every word by its characters but predicts only the words of its vocabulary. So the word
list of a corpus starts with the vocabulary and goes on with all other words of the text: every id
can be read, and the ids below the size of the vocabulary can be predicted.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import UNKNOWN, Vocabulary

MARKS = (BOS, EOS, UNKNOWN)


class WordCounts(dict[str, int]):
    """Occurrences by word, for at most twice `limit` words.

    Beyond that the rarest words are dropped until `limit` are left. A dropped word that occurs
    again is counted from one, so in a text of very many distinct words the counts of *rare* words
    can be too low. The count of a word that is never dropped is exact.
    """

    def __init__(self, limit: int) -> None:
        """Start with no words."""
        super().__init__()
        self.limit = limit

    def add(self, words: Sequence[str], counts: npt.NDArray[np.int64]) -> None:
        """Add the counts of some words."""
        get = self.get
        for word, count in zip(words, counts.tolist(), strict=True):
            if count:
                self[word] = get(word, 0) + count
        if len(self) > 2 * self.limit:
            self._drop_rare()

    def subtract(self, words: Sequence[str], counts: npt.NDArray[np.int64]) -> None:
        """Subtract the counts of some words that were added before."""
        for word, count in zip(words, counts.tolist(), strict=True):
            remaining = self.get(word, 0) - count
            if remaining > 0:
                self[word] = remaining
            else:
                self.pop(word, None)

    def _drop_rare(self) -> None:
        counts = np.fromiter(self.values(), np.int64, len(self))
        # Words of equal count stay or go together, or the result would depend on their order.
        floor = int(np.partition(counts, len(counts) - self.limit - 1)[-self.limit - 1])
        kept = {word: count for word, count in self.items() if count > floor}
        self.clear()
        self.update(kept)


def by_frequency(counts: Mapping[str, int]) -> list[str]:
    """Return the words except marks, most frequent first, ties in the order of code points."""
    words = sorted(word for word in counts if word not in MARKS)
    falling = np.argsort(-np.fromiter((counts[word] for word in words), np.int64), kind="stable")
    return [words[i] for i in falling.tolist()]


def make_vocabulary(
    ordered: Sequence[str], counts: Mapping[str, int], size: int, min_count: int | None
) -> Vocabulary:
    """Return a vocabulary of the three marks and the most frequent words.

    Args:
        ordered: Words in the order of `by_frequency`.
        counts: Occurrences by word.
        size: Largest size of the vocabulary, with the marks.
        min_count: Fewest occurrences of a word in the vocabulary; no limit if None.
    """
    chosen = ordered[: max(0, size - len(MARKS))]
    if min_count is not None:
        # The counts are sorted, so a binary search finds the first that is too small.
        chosen = chosen[: bisect_right(chosen, -min_count, key=lambda word: -counts[word])]
    if not chosen:
        highest = counts[ordered[0]] if ordered else 0
        raise InputError(
            f"the vocabulary is empty: of {len(ordered):,} words the most frequent occurs "
            f"{highest:,} times; expected at least one word of {min_count or 1:,} occurrences in a "
            f"vocabulary of at most {size:,}"
        )
    return Vocabulary((*MARKS, *chosen))


def make_word_list(
    vocabulary: Vocabulary, ordered: Sequence[str], held_out: Iterable[str], limit: int
) -> list[str]:
    """Return the vocabulary and then the other words of the text, by frequency.

    Words of held-out text are kept first, since it measures how well a model reads them.

    Args:
        vocabulary: Words to predict.
        ordered: Words of the training text in the order of `by_frequency`.
        held_out: Words of the held-out text.
        limit: Largest number of words.
    """
    held_out_words = {word for word in held_out if word not in vocabulary}
    others = [word for word in ordered if word not in vocabulary]
    others += sorted(held_out_words.difference(others))
    room = max(0, limit - len(vocabulary))
    if len(others) > room:
        room_for_train = max(0, room - len(held_out_words))
        train_only = (word for word in others if word not in held_out_words)
        frequent = set(itertools.islice(train_only, room_for_train))
        others = [word for word in others if word in held_out_words or word in frequent][:room]
    return [*vocabulary, *others]
