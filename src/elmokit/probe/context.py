"""Context pooling: a word's vector beside the mean of its sentence.

The vector of a word follows the words next to it most; the mean of its sentence says what the
sentence is about. Both parts are standardized (mean 0 and variance 1 over their numbers), so that
the cosine of two pooled vectors is the mean of two correlations: of the words and of the sentences.

Shape letters: T words of a sentence, D size of a vector.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError

ContextChoice = Literal["word", "sentence"]
"""What a vector stands for: a word in its sentence, or the word and its whole sentence."""
CONTEXTS: tuple[ContextChoice, ...] = ("word", "sentence")


def check_context(context: str) -> None:
    """Raise if the name of a context is not one of `CONTEXTS`."""
    if context not in CONTEXTS:
        raise InputError(f"context is {context!r}; expected 'word' or 'sentence'")


def pool_context(
    word: npt.NDArray[Any], sentence: npt.NDArray[Any], context: ContextChoice
) -> npt.NDArray[Any]:
    """Return the vectors of words, with the mean of their sentence beside each if asked for.

    Args:
        word: Vectors of words (…, D).
        sentence: Vectors of all words of their sentence (…, T, D).
        context: `"word"` returns the vectors unchanged, `"sentence"` twice as long ones.
    """
    if context == "word":
        return word
    mean = standardize(sentence.mean(axis=-2, dtype=np.float64))
    own = standardize(word)
    return np.concatenate([own, np.broadcast_to(mean, own.shape)], axis=-1)


def standardize(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the vectors (…, D) with mean 0 and variance 1 over their numbers; constant ones 0."""
    centered = vectors - vectors.mean(axis=-1, keepdims=True, dtype=np.float64)
    deviation = np.sqrt((centered**2).mean(axis=-1, keepdims=True))
    standardized: npt.NDArray[np.float64] = centered / np.maximum(deviation, 1e-12)
    return standardized
