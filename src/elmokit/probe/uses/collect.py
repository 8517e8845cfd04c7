"""The uses of a word in some sentences, with their vectors in every layer.

Shape letters: L layers, N uses, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError
from elmokit.probe.excerpt import snippet
from elmokit.probe.neighbors.word_use import find_word, unit_length

TIE = 1e-6
"""Cosines that differ by less count as equal: layer 0 has one vector for all uses of a word."""


@dataclass(frozen=True)
class CollectedUse:
    """One use of a word."""

    words: Sequence[str]
    """Words of the sentence."""
    position: int
    """Index of the word in the sentence."""
    sense: str = ""
    """Sense or group of the use; empty if none is known."""

    def snippet(self, width: int, measure: Callable[[str], int] = len, mark: str = "") -> str:
        """Return the word and as much of its sentence as fits; see `probe.excerpt.snippet`."""
        return snippet(self.words, self.position, width, measure, mark)


@dataclass(frozen=True)
class CollectedUses:
    """The uses of a word, in the order of the text."""

    word: str
    """The word."""
    uses: list[CollectedUse]
    """The uses."""
    layers_LND: FloatArray
    """Vectors of the uses in every layer, scaled to length 1."""
    without_word: int
    """Number of sentences that do not have the word."""

    def cosines(self, layer: int) -> FloatArray:
        """Return the cosine similarities (N, N) of the uses in one layer."""
        unit_ND = self.layers_LND[layer].astype(np.float64)
        cosines: FloatArray = (unit_ND @ unit_ND.T).astype(np.float32)
        return cosines

    def nearest(self, layer: int) -> list[int]:
        """Return for each use the number of the other use that is nearest to it."""
        cosine_NN = self.cosines(layer)
        np.fill_diagonal(cosine_NN, -np.inf)
        nearest: list[int] = cosine_NN.argmax(axis=1).tolist()
        return nearest

    def same_sense(self, layer: int) -> tuple[int, int] | None:
        """Return how many uses have one of the same sense nearest, and of how many uses.

        Uses without a sense do not count. None if there is nothing to compare: all vectors are
        the same, or fewer than two senses.
        """
        known = [k for k, use in enumerate(self.uses) if use.sense]
        cosine_NN = self.cosines(layer)[np.ix_(known, known)]
        if len({self.uses[k].sense for k in known}) < 2 or cosine_NN.min() > 1 - TIE:
            return None
        np.fill_diagonal(cosine_NN, -np.inf)
        nearest = cosine_NN.argmax(axis=1).tolist()
        senses = [self.uses[k].sense for k in known]
        return sum(senses[k] == senses[n] for k, n in enumerate(nearest)), len(known)


def collect_uses(
    elmo: Elmo,
    word: str,
    sentences: Iterable[Sentence],
    senses: Sequence[str] | None = None,
    most: int | None = None,
) -> CollectedUses:
    """Return all uses of a word in sentences, with their vectors in every layer.

    Args:
        elmo: The model.
        word: The word, in upper or lower case.
        sentences: Strings (tokenized) or lists of words; those without the word are passed over.
        senses: Sense or group of the word in each sentence, empty where it is not known.
        most: Number of uses to stop at.
    """
    if not isinstance(word, str) or not word.strip():
        raise InputError(f"word is {word!r}; expected one word, such as 'bank'")
    labels = None if senses is None else list(senses)
    with_word: list[tuple[Sequence[str], str]] = []
    without = found = 0
    for number, words in enumerate(elmo.words(sentences)):
        if labels is not None and number >= len(labels):
            raise InputError(
                f"there are {len(labels)} senses, but more sentences; expected a sense for each "
                "sentence"
            )
        if positions := find_word(words, word.strip()):
            with_word.append((words, labels[number] if labels is not None else ""))
            found += len(positions)
        else:
            without += 1
        if most is not None and found >= most:
            break
    else:
        if labels is not None and len(labels) != len(with_word) + without:
            raise InputError(
                f"there are {len(labels)} senses, but {len(with_word) + without} sentences; "
                "expected a sense for each sentence"
            )
    if not with_word:
        raise InputError(_not_found(word, without))
    uses: list[CollectedUse] = []
    vectors: list[FloatArray] = []
    arrays = elmo.stream([words for words, _ in with_word], "all")
    for (words, sense), array_LTD in zip(with_word, arrays, strict=True):
        for position in find_word(words, word.strip()):
            uses.append(CollectedUse(words, position, sense))
            vectors.append(array_LTD[:, position])
    layers_LND = unit_length(np.stack(vectors[:most], axis=1))
    return CollectedUses(word.strip(), uses[:most], layers_LND, without)


def _not_found(word: str, sentences: int) -> str:
    several = len(word.split()) > 1
    advice = "expected one word, not several" if several else "give sentences that have it"
    return f"{word!r} is in none of the {sentences:,} sentences; {advice}"
