"""The part of a word vector that comes from the whole word rather than from its characters.

ELMoForManyLangs concatenates a word embedding with the character filters before one projection.
Since [e ; c] · W = e · W_e + c · W_c, the word's part e · W_e is computed here and added to what a
network makes of the characters. The networks themselves only see characters.

Shape letters: U words, E word embedding, P width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import FloatArray, Weights
from elmokit.text.characters import NAMED_UNKNOWN
from elmokit.text.dictionary import Dictionary

WORDS_AT_ONCE = 256
"""Words per block: few enough for the sums to stay in the processor's cache."""


class Lexicon:
    """The known words of a model and their embeddings; all other words share one embedding."""

    def __init__(self, entries: Dictionary, weights: Weights, max_characters: int) -> None:
        """Prepare the lookup."""
        self._entries = entries
        self._unknown = entries.index_of(NAMED_UNKNOWN)
        self._max_length = max_characters - 2
        self._embedding = weights["words.embedding"]
        self._projection_EP = np.ascontiguousarray(weights["words.projection"], np.float32)

    @classmethod
    def from_bilm(cls, bilm: BiLM) -> Lexicon | None:
        """Return the lexicon of a model, or None if it has none."""
        if bilm.lexicon is None:
            return None
        return cls(bilm.lexicon, bilm.weights, bilm.config.char_cnn.max_characters)

    def vectors(self, words: Sequence[str]) -> FloatArray:
        """Return what to add to the word vectors (U, P)."""
        # The original truncates a long word before it looks it up.
        rows = [self._entries.index_of(word[: self._max_length], self._unknown) for word in words]
        out_UP = np.zeros((len(rows), self._projection_EP.shape[1]), np.float32)
        for start in range(0, len(rows), WORDS_AT_ONCE):
            x_UE = self._embedding[rows[start : start + WORDS_AT_ONCE]].astype(np.float32)
            block_UP = out_UP[start : start + WORDS_AT_ONCE]
            product = np.empty_like(block_UP)
            # Not a matrix product: BLAS rounds a row differently as the number of rows changes,
            # and a word's vector must not depend on the words that are computed with it.
            for e, weight_P in enumerate(self._projection_EP):
                np.multiply(x_UE[:, e, None], weight_P, out=product)
                block_UP += product
        return out_UP
