"""From sentences to layers: joins characters, word cache, packing and a network.

The network behind it is `reference.py`, or the compiled kernel through `native.py`; both have the
same two methods. State is an argument and a result. Knows nothing about raw text and files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import pack
from elmokit.engine.networks import Network
from elmokit.engine.state import WARM_UP
from elmokit.engine.wordcache import WordCache
from elmokit.text.characters import BOS, EOS, encode_words

Choose = Callable[[FloatArray], FloatArray]
"""What is wanted of the layers (L+1, N, D): (…, N, D). Applied before they are copied out."""


class Runner:
    """Runs a biLM on batches of tokenised sentences."""

    def __init__(self, bilm: BiLM, network: Network, cache_bytes: int) -> None:
        """The word cache holds at most `cache_bytes`."""
        self.config = bilm.config
        self._network = network
        self._cache = WordCache(bilm.config.lstm.width, cache_bytes)

    @property
    def engine(self) -> str:
        """The name of the network that runs."""
        return self._network.name

    def run(
        self, sentences: Sequence[Sequence[str]], state: State, choose: Choose
    ) -> tuple[list[FloatArray], State]:
        """One batch: for every sentence what was chosen of its layers (…, T, D), and the new state.

        Row i of the state belongs to sentence i. An empty sentence has no vectors, but its marks
        are read, as in bilm-tf and AllenNLP.
        """
        if not sentences:
            return [], state
        number: dict[str, int] = {}
        flat = [
            number.setdefault(word, len(number))
            for sentence in sentences
            for word in (BOS, *sentence, EOS)
        ]
        vectors_UP = self._cache.look_up(list(number), self._word_vectors)
        lengths = [len(sentence) + 2 for sentence in sentences]
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

    def _word_vectors(self, words: list[str]) -> FloatArray:
        return self._network.word_vectors(*encode_words(words, self.config.char_cnn.max_characters))
