"""What a word adds to its vector by being known as a whole, beside its characters.

ELMoForManyLangs joins an embedding of the word to the filters of its characters, before one
projection: [e ; c] · W is e · W_e + c · W_c, so this part is computed here and added to what a
network makes of the characters. The networks know nothing of it.

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
"""So many that the sums stay in the processor's cache."""


class Lexicon:
    """Known words with their embedding; all others are the same unknown word."""

    def __init__(self, entries: Dictionary, weights: Weights, max_characters: int) -> None:
        """The embedding may be memory-mapped: only the rows that are asked for are read."""
        self._entries = entries
        self._unknown = entries.find(NAMED_UNKNOWN)
        self._longest = max_characters - 2
        self._embedding = weights["words.embedding"]
        self._projection_EP = np.ascontiguousarray(weights["words.projection"], np.float32)

    @classmethod
    def of(cls, bilm: BiLM) -> Lexicon | None:
        """The lexicon of a model that has one."""
        if bilm.lexicon is None:
            return None
        return cls(bilm.lexicon, bilm.weights, bilm.config.char_cnn.max_characters)

    def vectors(self, words: Sequence[str]) -> FloatArray:
        """What is to be added to the words' vectors (U, P)."""
        # The original cuts a long word before it looks it up.
        rows = [self._entries.find(word[: self._longest], self._unknown) for word in words]
        out_UP = np.zeros((len(rows), self._projection_EP.shape[1]), np.float32)
        for start in range(0, len(rows), WORDS_AT_ONCE):
            x_UE = self._embedding[rows[start : start + WORDS_AT_ONCE]].astype(np.float32)
            there = out_UP[start : start + WORDS_AT_ONCE]
            product = np.empty_like(there)
            # Not a matrix product: BLAS rounds a row differently as the number of rows changes,
            # and a word's vector must not depend on the words that are computed beside it.
            for e, weight_P in enumerate(self._projection_EP):
                np.multiply(x_UE[:, e, None], weight_P, out=product)
                there += product
        return out_UP
