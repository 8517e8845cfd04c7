"""Senses as vectors: the mean of each layer's vectors over all uses of a sense in a corpus.

Knows nothing of files and scores.

Shape letters: S senses of a lemma, L layers, T words, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.probe.neighbors.nearest import unit_length
from elmokit.probe.senses.uses import SenseText, Use
from elmokit.probe.senses.wordnet import WordNet, lemma_and_part

Sums = npt.NDArray[np.float64]
Lemma = tuple[str, str]
"""A lemma and its part of speech."""

TIE = 1e-6
"""Cosines that differ by less are equal: layer 0 has one vector for all uses of a word form."""


def count_senses(
    text: SenseText, wordnet: WordNet, only: Collection[Lemma] | None = None
) -> dict[Lemma, dict[str, int]]:
    """How often a corpus uses each sense of each lemma; the most frequent first.

    Senses that are equally frequent are in WordNet's order; those that it has not are left out.

    Args:
        text: the corpus.
        wordnet: what gives the order.
        only: the lemmas that are wanted; all by default.
    """
    counts: dict[Lemma, dict[str, int]] = {}
    for use in text.uses():
        if only is None or (use.lemma, use.part) in only:
            of_lemma = counts.setdefault((use.lemma, use.part), {})
            for key in use.keys:
                if key in wordnet:
                    of_lemma[key] = of_lemma.get(key, 0) + 1

    def order(item: tuple[str, int]) -> tuple[int, int]:
        key, count = item
        return -count, wordnet.number(key) or 0

    return {
        lemma: dict(sorted(of_lemma.items(), key=order))
        for lemma, of_lemma in counts.items()
        if of_lemma
    }


class SenseInventory:
    """The senses of a corpus and their mean vectors, by lemma."""

    def __init__(self, counts: dict[Lemma, dict[str, int]], layers: int, dim: int) -> None:
        """No use has been added yet; `counts` has the senses of a lemma in order, the best first.

        Of senses that are equally near the one that comes first in that order is taken.
        """
        self._senses = {lemma: list(of_lemma) for lemma, of_lemma in counts.items()}
        self._sums = {
            lemma: np.zeros((len(keys), layers, dim)) for lemma, keys in self._senses.items()
        }
        self._counts = {
            lemma: np.zeros(len(keys), np.int64) for lemma, keys in self._senses.items()
        }
        self._units: dict[Lemma, tuple[Sums, Sums]] = {}

    @classmethod
    def learn(
        cls,
        elmo: Elmo,
        text: SenseText,
        counts: dict[Lemma, dict[str, int]],
        tell: Callable[[int], None] = lambda sentences: None,
    ) -> SenseInventory:
        """Read a corpus and add all uses of the senses that `counts` has.

        Sentences stream through: no more than some are held. Those without such a use are not read.

        Args:
            elmo: any model; it takes the words as they are.
            text: the corpus.
            counts: what `count_senses` found in it.
            tell: hears how many sentences were read.
        """
        inventory = cls(counts, elmo.layers, elmo.dim)
        wanted = [
            sentence
            for sentence in text.sentences
            if any((use.lemma, use.part) in counts for use in sentence.uses)
        ]
        vectors = elmo.stream((sentence.words for sentence in wanted), layers="all")
        for number, (sentence, vectors_LTD) in enumerate(zip(wanted, vectors, strict=True), 1):
            for use in sentence.uses:
                inventory.add(use, vectors_LTD)
            tell(number)
        return inventory

    def add(self, use: Use, vectors_LTD: FloatArray) -> None:
        """One more use, given with all vectors of its sentence."""
        senses = self._senses.get((use.lemma, use.part))
        if senses is None:
            return
        vector_LD = use_vector(use, vectors_LTD)
        for key in use.keys:
            if key in senses:
                self._sums[use.lemma, use.part][senses.index(key)] += vector_LD
                self._counts[use.lemma, use.part][senses.index(key)] += 1
        self._units.pop((use.lemma, use.part), None)

    def senses(self, lemma: str, part: str) -> list[str]:
        """The keys of a lemma's senses, the best first; none if the corpus has not got it."""
        return list(self._senses.get((lemma, part), ()))

    def mean(self, key: str) -> Sums:
        """A sense's mean vectors (L, D); KeyError if no use of it was added."""
        lemma = lemma_and_part(key)
        if key in self._senses.get(lemma, ()):
            place = self._senses[lemma].index(key)
            if count := self._counts[lemma][place]:
                mean_LD: Sums = self._sums[lemma][place] / count
                return mean_LD
        raise KeyError(key)

    def nearest(self, use: Use, vectors_LTD: FloatArray) -> list[str]:
        """The sense that each layer finds nearest, by cosine, and last that of all side by side.

        Empty if the corpus has not got the lemma.
        """
        lemma = use.lemma, use.part
        senses = self._senses.get(lemma)
        if senses is None:
            return []
        if lemma not in self._units:
            # To a cosine a sum is as good as a mean: its length does not matter.
            sums_SLD = self._sums[lemma]
            self._units[lemma] = (
                unit_length(sums_SLD),
                unit_length(sums_SLD.reshape(len(senses), -1)),
            )
        units_SLD, side_by_side_SD = self._units[lemma]
        vector_LD = use_vector(use, vectors_LTD)
        cosine_SL = np.einsum("sld,ld->sl", units_SLD, unit_length(vector_LD))
        cosine_S1 = (side_by_side_SD @ unit_length(vector_LD.reshape(-1)))[:, None]
        cosines = np.concatenate([cosine_SL, cosine_S1], axis=1)
        best = (cosines > cosines.max(0) - TIE).argmax(0)
        return [senses[i] for i in best]


def use_vector(use: Use, vectors_LTD: FloatArray) -> Sums:
    """Each layer's vector of a use: the mean of its words'."""
    vector_LD: Sums = vectors_LTD[:, use.start : use.end].mean(axis=1, dtype=np.float64)
    return vector_LD
