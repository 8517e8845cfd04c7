"""What else could stand at each place of a sentence: the likeliest words, by both directions.

`forward` knows the words before the place, `backward` those behind it; neither sees the word
itself. `both` is their product, normalized: what both directions find likely. (Exactly it would be
the product divided by how frequent the word is, if both sides were independent given the word;
no model file tells frequencies, and the softmax's bias is not one, so frequent words are favored.)

`<S>` and `</S>` are never offered, since a word stands there; `<UNK>` is: some word out of the
vocabulary. Probabilities of one direction are the model's own, as perplexity has them.
Shape letters: N places, V vocabulary, K words offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, overload

import numpy as np

from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError
from elmokit.lm.context import contexts
from elmokit.lm.softmax import DoubleArray, Softmax, normalize

SCORES_AT_ONCE = 1 << 22
"""Places × vocabulary that are computed together: a bound on memory."""


class Ranking(NamedTuple):
    """What one direction, or both, say about a place."""

    rank: int
    """The place of the word that stands there among all words, from 1."""
    probability: float
    """That of the word that stands there."""
    best: list[tuple[str, float]]
    """The likeliest words with their probabilities, falling."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"rank": self.rank, "probability": self.probability, "best": self.best}


class Place(NamedTuple):
    """A word of a sentence, and what could stand there."""

    word: str
    known: str
    """The word as the vocabulary has it: itself, or `<UNK>`."""
    forward: Ranking
    backward: Ranking
    both: Ranking

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rankings = (self.forward, self.backward, self.both)
        plain = zip(("forward", "backward", "both"), (r.to_dict() for r in rankings), strict=True)
        return {"word": self.word, "known": self.known, **dict(plain)}


@overload
def substitutes(elmo: Elmo, sentences: str, k: int = 10) -> list[Place]: ...  # type: ignore[overload-overlap]
@overload
def substitutes(elmo: Elmo, sentences: Iterable[Sentence], k: int = 10) -> list[list[Place]]: ...


def substitutes(
    elmo: Elmo, sentences: str | Iterable[Sentence], k: int = 10
) -> list[Place] | list[list[Place]]:
    """The `k` likeliest words for each place of one sentence, or of each of many.

    A string is one sentence, tokenized; in a list, strings are tokenized and lists of words are
    taken as they are. Where a sentence starts from is the model's `state`.
    """
    if isinstance(sentences, str):
        return substitutes(elmo, [sentences], k)[0]
    softmax = Softmax(elmo.bilm, elmo.threads)
    if not 1 <= k <= len(softmax):
        raise InputError(f"k is {k}; expected a number from 1 to {len(softmax):,}, the vocabulary")
    listed = list(elmo.words(sentences))
    found = _places(elmo, softmax, listed, k)
    return [[next(found) for _ in words] for words in listed]


def _places(elmo: Elmo, softmax: Softmax, sentences: Iterable[Any], k: int) -> Iterator[Place]:
    """Every word of all sentences, one after another."""
    for window, forward_NP, backward_NP in contexts(elmo, sentences):
        words = [word for sentence in window for word in sentence]
        # Each sentence has a row more than words: forward its last is of </S>, backward its first
        # of <S>, which are not places to put a word.
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
            normalize(both_NV)
            ids = softmax.ids(words[part]).tolist()
            for word, i, *scores in zip(
                words[part], ids, forward_NV, backward_NV, both_NV, strict=True
            ):
                rankings = (_ranking(softmax, scores_V, i, k) for scores_V in scores)
                yield Place(word, softmax.vocabulary[i], *rankings)


def _ranking(softmax: Softmax, scores_V: DoubleArray, word: int, k: int) -> Ranking:
    its_own = scores_V[word]
    scores_V[[softmax.begin, softmax.end]] = -np.inf
    best_K = np.argpartition(-scores_V, k - 1)[:k]
    best_K = best_K[np.lexsort((best_K, -scores_V[best_K]))]
    return Ranking(
        rank=1 + int((scores_V > its_own).sum()),
        probability=float(np.exp(its_own)),
        best=[
            (softmax.vocabulary[i], float(np.exp(scores_V[i])))
            for i in best_K.tolist()
            if scores_V[i] > -np.inf
        ],
    )
