"""The likeliest words at each position of a sentence, by both directions of the biLM.

`forward` sees the words before the position, `backward` those after it; neither sees the word
itself. `both` is the normalized product of the two. (The exact combination would divide the product
by the frequency of the word, if both sides were independent given the word. Model files do not
contain frequencies, and the bias of the softmax is none, so frequent words are favored.)

`<S>` and `</S>` are never candidates. `<UNK>` is one and stands for any word that is not in the
vocabulary. The probabilities of one direction are those that perplexity is computed from.
Shape letters: N positions, V vocabulary, K candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, overload

import numpy as np

from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError
from elmokit.lm.context import read_contexts
from elmokit.lm.softmax import DoubleArray, Softmax, log_softmax

SCORES_AT_ONCE = 1 << 22
"""Positions × vocabulary that are computed together: a bound on memory."""


class SubstituteRanking(NamedTuple):
    """The prediction for a position, by one direction or by both together."""

    rank: int
    """Rank of the word in the sentence among all words, from 1."""
    probability: float
    """Probability of the word in the sentence."""
    best: list[tuple[str, float]]
    """The likeliest words and their probabilities, likeliest first."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that can be written as JSON."""
        return {"rank": self.rank, "probability": self.probability, "best": self.best}


class SubstitutePosition(NamedTuple):
    """A word of a sentence, and the predictions for its position."""

    word: str
    """The word in the sentence."""
    known: str
    """The word as it is in the vocabulary: itself, or `<UNK>`."""
    forward: SubstituteRanking
    backward: SubstituteRanking
    both: SubstituteRanking

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that can be written as JSON."""
        rankings = (self.forward, self.backward, self.both)
        plain = zip(("forward", "backward", "both"), (r.to_dict() for r in rankings), strict=True)
        return {"word": self.word, "known": self.known, **dict(plain)}


@overload
def substitutes(elmo: Elmo, sentences: str, k: int = 10) -> list[SubstitutePosition]: ...  # type: ignore[overload-overlap]
@overload
def substitutes(
    elmo: Elmo, sentences: Iterable[Sentence], k: int = 10
) -> list[list[SubstitutePosition]]: ...


def substitutes(
    elmo: Elmo, sentences: str | Iterable[Sentence], k: int = 10
) -> list[SubstitutePosition] | list[list[SubstitutePosition]]:
    """Return the likeliest words at each position of one sentence, or of several.

    The command `elmo substitutes` does this.

    Args:
        elmo: Model with softmax and vocabulary. Its `state` is the initial state of a sentence.
        sentences: A string (one sentence, tokenized), or a list whose items are strings (tokenized)
            or lists of words (used as they are).
        k: Number of words to return per position and direction.
    """
    if isinstance(sentences, str):
        return substitutes(elmo, [sentences], k)[0]
    softmax = Softmax(elmo.bilm, elmo.threads)
    if not 1 <= k <= len(softmax):
        raise InputError(
            f"k is {k}; expected a number from 1 to {len(softmax):,}, the size of the vocabulary"
        )
    all_words = list(elmo.words(sentences))
    positions = _predict(elmo, softmax, all_words, k)
    return [[next(positions) for _ in words] for words in all_words]


def _predict(
    elmo: Elmo, softmax: Softmax, sentences: Iterable[Any], k: int
) -> Iterator[SubstitutePosition]:
    """Yield the predictions for all words of all sentences, in order."""
    for window, forward_NP, backward_NP in read_contexts(elmo, sentences):
        words = [word for sentence in window for word in sentence]
        # Each sentence has one row more than words: the last one of the forward direction predicts
        # </S>, the first one of the backward direction <S>.
        lengths = np.array([len(sentence) + 1 for sentence in window])
        ends = np.cumsum(lengths)
        forward_NP = np.delete(forward_NP, ends - 1, axis=0)
        backward_NP = np.delete(backward_NP, ends - lengths, axis=0)
        at_once = max(1, SCORES_AT_ONCE // len(softmax))
        for start in range(0, len(words), at_once):
            part = slice(start, start + at_once)
            forward_NV = softmax.log_probabilities(forward_NP[part])
            backward_NV = softmax.log_probabilities(backward_NP[part])
            both_NV = forward_NV + backward_NV
            both_NV[:, [softmax.begin, softmax.end]] = -np.inf
            log_softmax(both_NV)
            ids = softmax.ids(words[part]).tolist()
            for word, i, *scores in zip(
                words[part], ids, forward_NV, backward_NV, both_NV, strict=True
            ):
                rankings = (_ranking(softmax, scores_V, i, k) for scores_V in scores)
                yield SubstitutePosition(word, softmax.vocabulary[i], *rankings)


def _ranking(softmax: Softmax, scores_V: DoubleArray, word: int, k: int) -> SubstituteRanking:
    own_score = scores_V[word]
    scores_V[[softmax.begin, softmax.end]] = -np.inf
    best_K = np.argpartition(-scores_V, k - 1)[:k]
    best_K = best_K[np.lexsort((best_K, -scores_V[best_K]))]
    return SubstituteRanking(
        rank=1 + int((scores_V > own_score).sum()),
        probability=float(np.exp(own_score)),
        best=[
            (softmax.vocabulary[i], float(np.exp(scores_V[i])))
            for i in best_K.tolist()
            if scores_V[i] > -np.inf
        ],
    )
