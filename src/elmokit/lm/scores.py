"""How likely a biLM finds each word of a text, from what stands before it and behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.elmo import Elmo, Sentence
from elmokit.lm.context import contexts
from elmokit.lm.softmax import DoubleArray, Softmax


class Scores(NamedTuple):
    """Natural logarithms of probabilities; words out of the vocabulary count as `<UNK>`."""

    words: Sequence[str]
    forward: DoubleArray
    """(n + 1,) of each word after all words before it; last that of the end."""
    backward: DoubleArray
    """(n + 1,) of each word before all words behind it; *first* that of the beginning."""
    unknown: int
    """How many of the words are out of the vocabulary."""


def score(
    elmo: Elmo, sentences: Iterable[Sentence], *, softmax: Softmax | None = None
) -> Iterator[Scores]:
    """Each sentence that has words, in order, in bounded memory.

    Where a sentence starts from is the model's `state`; `"carry"` reads the sentences as one
    stream, from nothing. `softmax` is the model's own, if it is there already.
    """
    softmax = softmax or Softmax(elmo.bilm, elmo.threads)
    return _score(elmo, elmo.words(sentences), softmax)


def _score(elmo: Elmo, sentences: Iterator[Sequence[str]], softmax: Softmax) -> Iterator[Scores]:
    for window, forward_NP, backward_NP in contexts(elmo, sentences):
        # All marks and words of the window; a direction predicts all but its own first mark.
        ids = [[softmax.begin, *softmax.ids(words).tolist(), softmax.end] for words in window]
        after = np.concatenate([sentence[1:] for sentence in ids])
        before = np.concatenate([sentence[:-1] for sentence in ids])
        found = softmax.log_probability(
            np.concatenate([forward_NP, backward_NP]), np.concatenate([after, before])
        )
        cuts = np.cumsum([len(words) + 1 for words in window])[:-1]
        forward, backward = (np.split(half, cuts) for half in np.split(found, 2))
        for i, words in enumerate(window):
            unknown = ids[i][1:-1].count(softmax.unknown)
            yield Scores(words, forward[i], backward[i], unknown)
