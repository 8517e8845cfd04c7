"""From sentences to layers: joins characters, word cache, packing and a network.

The network behind it is `reference.py`, or the compiled kernel through `native.py`; both have the
same two methods. State is an argument and a result. Knows nothing about raw text and files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import pack
from elmokit.engine.lexicon import Lexicon
from elmokit.engine.networks import Network
from elmokit.engine.state import WARM_UP
from elmokit.engine.wordcache import WordCache
from elmokit.errors import InputError

Compute = Callable[[list[str]], FloatArray]
"""Words to their context-free vectors."""
Choose = Callable[[FloatArray], FloatArray]
"""What is wanted of the layers (L+1, N, D): (…, N, D). Applied before they are copied out."""


class Tokens(Protocol):
    """Word vectors that were stored, such as `formats/token_cache.py` reads."""

    def check(self, width: int, compute: Compute) -> None:
        """Raise unless they are vectors of this model."""

    def look_up(self, words: Sequence[str], compute: Compute) -> FloatArray:
        """The vectors of distinct words; `compute` is called for those not stored."""


class Runner:
    """Runs a biLM on batches of tokenised sentences."""

    def __init__(self, bilm: BiLM, network: Network, cache_bytes: int) -> None:
        """The word cache holds at most `cache_bytes`."""
        self.config = bilm.config
        self._network = network
        self._characters = bilm.characters
        self._lexicon = Lexicon.of(bilm)
        self._tokens: Tokens | None = None
        self._cache_bytes = cache_bytes
        self.forget_words()

    @property
    def engine(self) -> str:
        """The name of the network that runs."""
        return self._network.name

    def use_tokens(self, tokens: Tokens) -> None:
        """Take the vectors of these words as they are; refused if the model computes others."""
        tokens.check(self.config.lstm.width, self._compute)
        self._tokens = tokens

    def forget_words(self) -> None:
        """Begin a new word cache."""
        self._cache = WordCache(self.config.lstm.width, self._cache_bytes)

    def run(
        self, sentences: Sequence[Sequence[str]], state: State, choose: Choose
    ) -> tuple[list[FloatArray], State]:
        """One batch: for every sentence what was chosen of its layers (…, T, D), and the new state.

        Row i of the state belongs to sentence i. An empty sentence has no vectors, but its marks
        are read, as in bilm-tf and AllenNLP.
        """
        begin, end = self._characters.marks
        number: dict[str, int] = {}
        flat = [
            number.setdefault(word, len(number))
            for sentence in sentences
            for word in (begin, *sentence, end)
        ]
        vectors_UP = self.word_vectors(list(number))
        return self._read(vectors_UP, flat, [len(s) + 2 for s in sentences], state, choose)

    def run_characters(
        self, sentences: Sequence[npt.NDArray[np.integer[Any]]], state: State, choose: Choose
    ) -> tuple[list[FloatArray], State]:
        """Like `run`, for sentences whose words are character ids already: (T, C) each, unshifted.

        For callers that have no strings; the word cache is not asked.
        """
        if self._lexicon is not None:
            raise InputError("this model also knows whole words: give it words, not characters")
        marks_2C, _ = self._characters.encode(self._characters.marks)
        rows = [row for s in sentences for row in (marks_2C[:1], s, marks_2C[1:])]
        if not rows:
            return [], state
        ids_UC, flat = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        lengths_U = (ids_UC != self._characters.padding).sum(axis=1)
        vectors_UP = self._network.word_vectors(ids_UC.astype(np.int16), lengths_U)
        lengths = [len(s) + 2 for s in sentences]
        return self._read(vectors_UP, flat.ravel().tolist(), lengths, state, choose)

    def _read(
        self,
        vectors_UP: FloatArray,
        flat: list[int],
        lengths: list[int],
        state: State,
        choose: Choose,
    ) -> tuple[list[FloatArray], State]:
        """Sentences, marks included, whose words are rows of `vectors_UP`, one after another."""
        if not lengths:
            return [], state
        packing = pack(lengths)
        words_NP = vectors_UP[np.array(flat)[packing.source]]
        rows = packing.order.tolist()
        layers_LND, after = self._network.contextualize(words_NP, packing, state.select(rows))
        chosen = packing.unpack(choose(layers_LND))
        ends = np.cumsum(lengths).tolist()
        results = [
            chosen[..., end - length + 1 : end - 1, :].copy()  # without the sentence marks
            for length, end in zip(lengths, ends, strict=True)
        ]
        return results, state.replace(rows, after)

    def settle(self, sentences: Sequence[Sequence[str]] = WARM_UP) -> State:
        """The state after reading these sentences one after another, from nothing (one row)."""
        state = State.zeros(self.config)
        for sentence in sentences:
            _, state = self.run([sentence], state, choose=lambda layers: layers[0])
        return state

    def word_vectors(self, words: list[str]) -> FloatArray:
        """Layer 0 of distinct words, (U, P): from where they are kept, else computed."""
        if self._tokens is not None:
            return self._tokens.look_up(words, self._cached)
        return self._cached(words)

    def _cached(self, words: list[str]) -> FloatArray:
        return self._cache.look_up(words, self._compute)

    def _compute(self, words: list[str]) -> FloatArray:
        vectors_UP = self._network.word_vectors(*self._characters.encode(words))
        if self._lexicon is not None:
            vectors_UP += self._lexicon.vectors(words)
        return vectors_UP
