"""From sentences to layers: joins characters, word cache, packing and a network.

The network behind it is `reference.py`, or the compiled kernel through `native.py`; both have the
same two methods. State is an argument and a result. Knows nothing about raw text and files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import pack
from elmokit.engine.lexicon import Lexicon
from elmokit.engine.networks import Network
from elmokit.engine.state import WARM_UP
from elmokit.engine.wordcache import WordCache

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
    """Runs a biLM on batches of tokenized sentences."""

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
        marked = [(begin, *sentence, end) for sentence in sentences]
        return self._read(marked, state, choose, cut=1)

    def read(
        self, sequences: Sequence[Sequence[str]], state: State, choose: Choose
    ) -> tuple[list[FloatArray], State]:
        """Like `run`, but nothing is added: the sentence marks are read where they are given.

        No sequence may be empty. `marks` says what the marks are.
        """
        return self._read(sequences, state, choose, cut=0)

    @property
    def marks(self) -> tuple[str, str]:
        """The words that begin and end a sentence."""
        return self._characters.marks

    def _read(
        self, sequences: Sequence[Sequence[str]], state: State, choose: Choose, cut: int
    ) -> tuple[list[FloatArray], State]:
        """The layers of each sequence without so many words at either end, and the new state."""
        if not sequences:
            return [], state
        number: dict[str, int] = {}
        flat = [number.setdefault(word, len(number)) for sequence in sequences for word in sequence]
        vectors_UP = self.word_vectors(list(number))
        lengths = [len(sequence) for sequence in sequences]
        packing = pack(lengths)
        words_NP = vectors_UP[np.array(flat)[packing.source]]
        rows = packing.order.tolist()
        layers_LND, after = self._network.contextualize(words_NP, packing, state.select(rows))
        chosen = packing.unpack(choose(layers_LND))
        results = [
            chosen[..., stop - length + cut : stop - cut, :].copy()
            for length, stop in zip(lengths, np.cumsum(lengths).tolist(), strict=True)
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
