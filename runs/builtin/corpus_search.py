"""Nearest uses of words in a small corpus: all vectors in memory, every one compared.

The numbers of the model card are exact: `elmokit.probe.Index`, for large corpora, stores vectors in
16 bits and returns one use per sentence.

Shape letters: N uses, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.errors import InputError
from elmokit.probe.neighbors.index import Neighbor
from elmokit.probe.neighbors.word_use import find_word, unit_length


class CorpusSearch:
    """The word uses of a corpus with their vectors, to be searched by cosine similarity."""

    def __init__(
        self, elmo: Elmo, sentences: Iterable[Sentence], *, layer: LayerChoice = "top"
    ) -> None:
        """Embed the sentences."""
        if layer == "all":
            raise InputError(
                "layer is 'all', but a use has one vector; expected 'top', 'mix' or a number"
            )
        self._sentences: list[Sequence[str]] = []
        self._positions: list[tuple[int, int]] = []
        vectors = [np.empty((0, elmo.dim), np.float32)]
        for words, vectors_TD in elmo.items(sentences, layer):
            self._positions += ((len(self._sentences), position) for position in range(len(words)))
            self._sentences.append(words)
            vectors.append(vectors_TD)
        self._vectors_ND = unit_length(np.concatenate(vectors))

    def __len__(self) -> int:
        """Return the number of uses."""
        return len(self._positions)

    def search(
        self,
        vector_D: FloatArray,
        number: int = 10,
        *,
        word: str | None = None,
        exclude: Sequence[str] | None = None,
    ) -> list[Neighbor]:
        """Return the most similar uses, best first.

        Args:
            vector_D: Query vector, in the layer of the corpus.
            number: How many neighbors to return.
            word: Return only uses of this word, in upper or lower case.
            exclude: Words of a sentence whose uses are not returned.
        """
        if number < 1:
            raise InputError(f"number is {number}; expected 1 or more neighbors")
        similarity_N = self._vectors_ND @ unit_length(vector_D[None])[0]
        neighbors: list[Neighbor] = []
        for i in np.argsort(-similarity_N, kind="stable").tolist():
            sentence, position = self._positions[i]
            words = self._sentences[sentence]
            if exclude is not None and list(words) == list(exclude):
                continue
            if word is None or position in find_word(words, word):
                neighbors.append(Neighbor(float(similarity_N[i]), words, position, i))
                if len(neighbors) == number:
                    break
        return neighbors
