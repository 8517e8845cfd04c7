"""The probability of each word of a text, given the words before it and the words after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.elmo import Elmo, Sentence
from elmokit.lm.context import read_contexts
from elmokit.lm.softmax import DoubleArray, Softmax


class SentenceScores(NamedTuple):
    """Log probabilities (natural) of the words of a sentence; unknown words count as `<UNK>`."""

    words: Sequence[str]
    """The words of the sentence."""
    forward: DoubleArray
    """(n + 1,) log probability of each word given all words before it; the last one is `</S>`."""
    backward: DoubleArray
    """(n + 1,) log probability of each word given all words after it; the *first* one is `<S>`."""
    unknown: int
    """Number of words that are not in the vocabulary."""


def score_sentences(
    elmo: Elmo, sentences: Iterable[Sentence], *, softmax: Softmax | None = None
) -> Iterator[SentenceScores]:
    """Yield the log probabilities of each sentence that has words, in order.

    Args:
        elmo: Model with softmax and vocabulary. Its `state` is the initial state of a sentence;
            `"carry"` reads the sentences as one stream, starting from zeros.
        sentences: Strings (tokenized) or lists of words, any number of them.
        softmax: The model's softmax, if it was created already.
    """
    softmax = softmax or Softmax(elmo.bilm, elmo.threads)
    return _score(elmo, elmo.words(sentences), softmax)


def _score(
    elmo: Elmo, sentences: Iterator[Sequence[str]], softmax: Softmax
) -> Iterator[SentenceScores]:
    for window, forward_NP, backward_NP in read_contexts(elmo, sentences):
        # All marks and words of the window; each direction predicts all but its own first mark.
        ids = [[softmax.begin, *softmax.ids(words).tolist(), softmax.end] for words in window]
        forward_ids = np.concatenate([sentence[1:] for sentence in ids])
        backward_ids = np.concatenate([sentence[:-1] for sentence in ids])
        scores = softmax.log_probability(
            np.concatenate([forward_NP, backward_NP]), np.concatenate([forward_ids, backward_ids])
        )
        cuts = np.cumsum([len(words) + 1 for words in window])[:-1]
        forward, backward = (np.split(half, cuts) for half in np.split(scores, 2))
        for i, words in enumerate(window):
            unknown = ids[i][1:-1].count(softmax.unknown)
            yield SentenceScores(words, forward[i], backward[i], unknown)
