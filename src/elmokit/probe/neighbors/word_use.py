"""A word as a sentence uses it, and its vector there.

Shape letters: D size of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.errors import InputError
from elmokit.probe.context import ContextChoice, check_context, pool_context


class WordUse(NamedTuple):
    """A word in a sentence, with its vector."""

    words: Sequence[str]
    """Words of the sentence."""
    position: int
    """Index of the word in the sentence."""
    vector: FloatArray
    """Vector of the word in this sentence: (D,), or (layers, D) for all layers."""


def embed_word(
    elmo: Elmo,
    word: str,
    sentence: Sentence,
    layer: LayerChoice = "top",
    occurrence: int = 1,
    context: ContextChoice = "word",
) -> WordUse:
    """Return a word of a sentence with its contextual vector.

    Args:
        elmo: The model.
        word: The word, in upper or lower case.
        sentence: A sentence with this word, as text or as words.
        layer: `"top"`, `"mix"`, `"all"` or the number of a layer.
        occurrence: Which one, if the sentence has the word several times; the first is 1.
        context: `"sentence"` puts the mean of the sentence beside the vector of the word.
    """
    check_context(context)
    words, vectors_TD = next(iter(elmo.items([sentence], layer)))
    positions = find_word(words, word)
    if not positions:
        raise InputError(f"{word!r} is not in the sentence; its words are: {' '.join(words)}")
    if not 1 <= occurrence <= len(positions):
        raise InputError(
            f"occurrence is {occurrence}, but the sentence has {word!r} {len(positions)} times: "
            f"{' '.join(words)}"
        )
    position = positions[occurrence - 1]
    vector = pool_context(vectors_TD[..., position, :], vectors_TD, context)
    return WordUse(words, position, vector.astype(np.float32, copy=False))


def find_word(words: Sequence[str], word: str) -> list[int]:
    """Return the positions of a word in a sentence, in upper or lower case."""
    folded = word.casefold()
    return [i for i, each in enumerate(words) if each.casefold() == folded]


def unit_length(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the vectors (…, D) scaled to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: npt.NDArray[Any] = vectors / np.maximum(length, 1e-12)
    return unit
