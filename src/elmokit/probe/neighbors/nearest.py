"""Nearest neighbors in context: the uses of words in a corpus that are most like one of a word.

Likeness is the cosine of two vectors of one layer. `Uses` holds a small corpus in memory and looks
at every vector; `index.py` has the same for a large one, on the disk. Beside the neighbors stand
the nearest words by vectors that know no context, as in the paper's table for "play".

Shape letters: N uses, D size of a vector, E size of a static one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Layers, Sentence
from elmokit.errors import InputError

if TYPE_CHECKING:
    pass

BACKGROUND = 150
"""At most so many other uses of the word are in the picture."""


class Neighbor(NamedTuple):
    """A use of a word in a sentence of the corpus."""

    similarity: float
    """The cosine, -1 to 1."""
    words: Sequence[str]
    """The sentence."""
    place: int
    """Which of its words."""
    row: int = -1
    """Which of all uses in the corpus."""


class Uses:
    """The words of a corpus as they are used there: a vector of length 1 for each."""

    def __init__(self, elmo: Elmo, sentences: Iterable[Sentence], *, layer: Layers = "top") -> None:
        """Embed the sentences."""
        if layer == "all":
            raise InputError("layer is 'all'; a use has one vector: 'mix', 'top' or a number")
        self._sentences: list[Sequence[str]] = []
        self._places: list[tuple[int, int]] = []
        found = [np.empty((0, elmo.dim), np.float32)]
        for words, vectors_TD in elmo.items(sentences, layer):
            self._places += ((len(self._sentences), place) for place in range(len(words)))
            self._sentences.append(words)
            found.append(vectors_TD)
        self._vectors_ND = unit_length(np.concatenate(found))

    def __len__(self) -> int:
        """N."""
        return len(self._places)

    def nearest(
        self,
        vector_D: FloatArray,
        number: int = 10,
        *,
        word: str | None = None,
        but: Sequence[str] | None = None,
    ) -> list[Neighbor]:
        """The most similar uses, the best first.

        Only those of `word`, whatever its case, if it is given; never those in the sentence `but`.
        """
        if number < 1:
            raise InputError(f"number is {number}; expected 1 or more neighbors")
        similarity_N = self._vectors_ND @ unit_length(vector_D[None])[0]
        neighbors: list[Neighbor] = []
        for i in np.argsort(-similarity_N, kind="stable").tolist():
            sentence, place = self._places[i]
            words = self._sentences[sentence]
            if but is not None and list(words) == list(but):
                continue
            if word is None or place in places_of(words, word):
                neighbors.append(Neighbor(float(similarity_N[i]), words, place, i))
                if len(neighbors) == number:
                    break
        return neighbors


def neighbors(
    elmo: Elmo,
    word: str,
    sentence: Sentence,
    corpus: Iterable[Sentence],
    *,
    layer: Layers = "top",
    number: int = 10,
) -> list[Neighbor]:
    """The uses in a corpus that are nearest to a word as a sentence uses it."""
    words, vector_D = in_context(elmo, word, sentence, layer)
    return Uses(elmo, corpus, layer=layer).nearest(vector_D, number, but=words)


def in_context(
    elmo: Elmo, word: str, sentence: Sentence, layer: Layers = "top"
) -> tuple[Sequence[str], FloatArray]:
    """A sentence's words, and the vector (…, D) of one of them, the first of that name."""
    found = one_use(elmo, word, sentence, layer)
    return found.words, found.vector


class Use(NamedTuple):
    """A word as a sentence uses it."""

    words: Sequence[str]
    place: int
    vector: FloatArray
    """(…, D)."""


def one_use(elmo: Elmo, word: str, sentence: Sentence, layer: Layers = "top", at: int = 1) -> Use:
    """The word where the sentence has it for the `at`-th time."""
    words, vectors_TD = next(iter(elmo.items([sentence], layer)))
    places = places_of(words, word)
    if not places:
        raise InputError(f"{word!r} is not in the sentence; its words are: {' '.join(words)}")
    if not 1 <= at <= len(places):
        raise InputError(
            f"at is {at}, but the sentence has {word!r} {len(places)} times: {' '.join(words)}"
        )
    place = places[at - 1]
    return Use(words, place, vectors_TD[..., place, :])


def places_of(words: Sequence[str], word: str) -> list[int]:
    """Where a word stands in a sentence, whatever its case."""
    wanted = word.casefold()
    return [i for i, each in enumerate(words) if each.casefold() == wanted]


def unit_length(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Vectors (…, D) in the same directions, of length 1; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: npt.NDArray[Any] = vectors / np.maximum(length, 1e-12)
    return unit
