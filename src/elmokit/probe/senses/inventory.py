"""Sense vectors: the mean of each layer's vectors over all uses of a sense in a corpus.

Knows nothing about files and scores.

Shape letters: S senses of a lemma, L layers, T words, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.probe.context import ContextChoice, pool_context
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.probe.senses.corpus import SenseCorpus, SenseUse
from elmokit.probe.senses.wordnet import WordNet, lemma_and_part
from elmokit.progress import ProgressCallback, ignore_progress

Vectors = npt.NDArray[np.float64]
Lemma = tuple[str, str]
"""A lemma and its part of speech."""

TIE = 1e-6
"""Cosines that differ by less count as equal: layer 0 has the same vector for all uses of a word
form."""


def count_senses(
    text: SenseCorpus, wordnet: WordNet, only: Collection[Lemma] | None = None
) -> dict[Lemma, dict[str, int]]:
    """Count how often a corpus uses each sense of each lemma; returns the most frequent first.

    Equally frequent senses are in WordNet's order; senses that are not in WordNet are left out.

    Args:
        text: The corpus.
        wordnet: The senses and their order.
        only: Lemmas to count; all by default.
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
    """The senses of each lemma in a corpus, with their mean vectors."""

    def __init__(
        self,
        counts: dict[Lemma, dict[str, int]],
        layers: int,
        dim: int,
        context: ContextChoice = "word",
    ) -> None:
        """Create an inventory without any use.

        Args:
            counts: The senses of each lemma, as `count_senses` returns them. Among equally near
                senses, the first one in this order is chosen.
            layers: Number of layers of the model.
            dim: Size of its vectors.
            context: `"sentence"` adds the mean of its sentence to each use.
        """
        self._context = context
        if context == "sentence":
            dim *= 2
        self._senses = {lemma: list(of_lemma) for lemma, of_lemma in counts.items()}
        self._sums = {
            lemma: np.zeros((len(keys), layers, dim)) for lemma, keys in self._senses.items()
        }
        self._counts = {
            lemma: np.zeros(len(keys), np.int64) for lemma, keys in self._senses.items()
        }
        self._units: dict[Lemma, tuple[Vectors, Vectors]] = {}

    @classmethod
    def build(
        cls,
        elmo: Elmo,
        text: SenseCorpus,
        counts: dict[Lemma, dict[str, int]],
        progress: ProgressCallback = ignore_progress,
        context: ContextChoice = "word",
    ) -> SenseInventory:
        """Embed a corpus and add all uses of the senses in `counts`.

        Sentences are streamed, and only those with such a use are embedded.

        Args:
            elmo: Any model; it takes the words as they are.
            text: The corpus.
            counts: The senses to include, as `count_senses` returns them.
            progress: Called with the number of sentences done and of all sentences to embed.
            context: `"sentence"` adds the mean of its sentence to each use.
        """
        inventory = cls(counts, elmo.layers, elmo.dim, context)
        relevant = [
            sentence
            for sentence in text.sentences
            if any((use.lemma, use.part) in counts for use in sentence.uses)
        ]
        vectors = elmo.stream((sentence.words for sentence in relevant), layers="all")
        for number, (sentence, vectors_LTD) in enumerate(zip(relevant, vectors, strict=True), 1):
            for use in sentence.uses:
                inventory.add(use, vectors_LTD)
            progress(number, len(relevant))
        return inventory

    def add(self, use: SenseUse, vectors_LTD: FloatArray) -> None:
        """Add a use, given with all vectors of its sentence."""
        senses = self._senses.get((use.lemma, use.part))
        if senses is None:
            return
        vector_LD = use_vector(use, vectors_LTD, self._context)
        for key in use.keys:
            if key in senses:
                self._sums[use.lemma, use.part][senses.index(key)] += vector_LD
                self._counts[use.lemma, use.part][senses.index(key)] += 1
        self._units.pop((use.lemma, use.part), None)

    def senses(self, lemma: str, part: str) -> list[str]:
        """Return the keys of a lemma's senses, the preferred one first; empty if it is unknown."""
        return list(self._senses.get((lemma, part), ()))

    def mean(self, key: str) -> Vectors:
        """Return the mean vectors (L, D) of a sense; `KeyError` if no use of it was added."""
        lemma = lemma_and_part(key)
        if key in self._senses.get(lemma, ()):
            index = self._senses[lemma].index(key)
            if count := self._counts[lemma][index]:
                mean_LD: Vectors = self._sums[lemma][index] / count
                return mean_LD
        raise KeyError(key)

    def nearest(self, use: SenseUse, vectors_LTD: FloatArray) -> list[str]:
        """Return the nearest sense by cosine for each layer, and last for all layers side by side.

        Empty if the corpus does not have the lemma.
        """
        lemma = use.lemma, use.part
        senses = self._senses.get(lemma)
        if senses is None:
            return []
        if lemma not in self._units:
            # The cosine does not depend on the length, so sums serve as well as means.
            sums_SLD = self._sums[lemma]
            self._units[lemma] = (
                unit_length(sums_SLD),
                unit_length(sums_SLD.reshape(len(senses), -1)),
            )
        units_SLD, side_by_side_SD = self._units[lemma]
        vector_LD = use_vector(use, vectors_LTD, self._context)
        cosine_SL = np.einsum("sld,ld->sl", units_SLD, unit_length(vector_LD))
        cosine_S1 = (side_by_side_SD @ unit_length(vector_LD.reshape(-1)))[:, None]
        cosines = np.concatenate([cosine_SL, cosine_S1], axis=1)
        best = (cosines > cosines.max(0) - TIE).argmax(0)
        return [senses[i] for i in best]


def use_vector(use: SenseUse, vectors_LTD: FloatArray, context: ContextChoice = "word") -> Vectors:
    """Return each layer's vector of a use: the mean over its words, pooled with its sentence."""
    vector_LD: Vectors = vectors_LTD[:, use.start : use.end].mean(axis=1, dtype=np.float64)
    return pool_context(vector_LD, vectors_LTD, context)
