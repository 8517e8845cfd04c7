"""Which words a corpus knows: counting them in bounded memory, and ordering them.

A biLM reads every word by its characters but predicts only those of its vocabulary. So a corpus
has two lists in one: first the vocabulary, then all other words that were seen, so that a number
up to the vocabulary's size is a word to predict, and any number a word to read.
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
    """How often each word occurs, for at most twice `limit` words.

    Beyond that the rarest are forgotten until `limit` are left, and a forgotten word that comes
    again starts from one: so the counts of *rare* words can be too low in a corpus of very many
    distinct words. A word that is frequent enough to be kept at every time is counted exactly.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def add(self, words: Sequence[str], counts: npt.NDArray[np.int64]) -> None:
        """Count some more."""
        get = self.get
        for word, count in zip(words, counts.tolist(), strict=True):
            if count:
                self[word] = get(word, 0) + count
        if len(self) > 2 * self.limit:
            self._forget()

    def subtract(self, words: Sequence[str], counts: npt.NDArray[np.int64]) -> None:
        """Take some back that were counted."""
        for word, count in zip(words, counts.tolist(), strict=True):
            left = self.get(word, 0) - count
            if left > 0:
                self[word] = left
            else:
                self.pop(word, None)

    def _forget(self) -> None:
        counts = np.fromiter(self.values(), np.int64, len(self))
        # All of the same count stay or go, or which ones would depend on their order.
        floor = int(np.partition(counts, len(counts) - self.limit - 1)[-self.limit - 1])
        kept = {word: count for word, count in self.items() if count > floor}
        self.clear()
        self.update(kept)


def by_frequency(counts: Mapping[str, int]) -> list[str]:
    """The words but the marks, most frequent first, equally frequent ones by their characters."""
    words = sorted(word for word in counts if word not in MARKS)
    falling = np.argsort(-np.fromiter((counts[word] for word in words), np.int64), kind="stable")
    return [words[i] for i in falling.tolist()]


def make_vocabulary(
    ordered: Sequence[str], counts: Mapping[str, int], size: int, min_count: int | None
) -> Vocabulary:
    """The three marks, then words `by_frequency`: up to `size` in all, down to `min_count`."""
    chosen = ordered[: max(0, size - len(MARKS))]
    if min_count is not None:
        # They fall, so one can look for the place where they fall below it.
        chosen = chosen[: bisect_right(chosen, -min_count, key=lambda word: -counts[word])]
    if not chosen:
        most = counts[ordered[0]] if ordered else 0
        raise InputError(
            f"no word is in the vocabulary of at most {size:,} words that occur {min_count or 1:,} "
            f"times; of {len(ordered):,} words the most frequent occurs {most:,} times"
        )
    return Vocabulary((*MARKS, *chosen))


def make_list(
    vocabulary: Vocabulary, ordered: Sequence[str], held_out: Iterable[str], limit: int
) -> list[str]:
    """The vocabulary, then the other words, `by_frequency`; no more than `limit` in all.

    Words of held-out text are kept first: what is measured there is how well a model reads them.
    """
    other = {word for word in held_out if word not in vocabulary}
    rest = [word for word in ordered if word not in vocabulary]
    rest += sorted(other.difference(rest))
    room = max(0, limit - len(vocabulary))
    if len(rest) > room:
        places = max(0, room - len(other))  # for words that are not held out
        first = set(itertools.islice((word for word in rest if word not in other), places))
        rest = [word for word in rest if word in other or word in first][:room]
    return [*vocabulary, *rest]
