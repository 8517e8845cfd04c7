"""The frozen biLM behind tensors: the fast engine, called as `BiLMModule` is.

No gradients and no parameters. The vectors of frequent words are kept between calls. Runs on the
CPU, wherever the model that uses it is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import WORD_CACHE_BYTES
from elmokit.engine.lexicon import Lexicon
from elmokit.engine.networks import choose_network
from elmokit.engine.runner import Runner
from elmokit.engine.wordcache import WordCache
from elmokit.errors import InputError
from elmokit.nn.batch import Batch, count_characters
from elmokit.nn.state import TensorState


class FrozenBiLM:
    """A biLM that is only read."""

    def __init__(
        self,
        bilm: BiLM,
        *,
        dtype: str = "float32",
        threads: int | None = None,
        cache_bytes: int = WORD_CACHE_BYTES,
    ) -> None:
        """`dtype` and `threads` as for `Elmo.load`; the word cache is bounded by `cache_bytes`."""
        self.bilm = bilm
        self.config = bilm.config
        self._options: dict[str, Any] = {
            "dtype": dtype,
            "threads": threads,
            "cache_bytes": cache_bytes,
        }
        self._network = choose_network(bilm, dtype, threads)
        self._lexicon = Lexicon.of(bilm)
        self._cache = WordCache(self.config.lstm.width, cache_bytes)

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenBiLM:
        """Nothing in it changes: copies of a task model share it."""
        return self

    def __reduce__(self) -> Any:
        """Pickled with a task model, it takes the weights along and makes a new engine of them."""
        return partial(FrozenBiLM, **self._options), (self.bilm,)

    def settle(self) -> TensorState:
        """The state that every sentence starts from by default (one row)."""
        settled = self.bilm.settled
        if settled is None:
            settled = Runner(self.bilm, self._network, cache_bytes=0).settle()
        return TensorState.of(settled)

    def __call__(self, batch: Batch, state: TensorState) -> tuple[Tensor, TensorState]:
        """All layers (L+1, N, D) of a batch, and the state after it; `batch.pad` makes (B, T)."""
        return self.contextualize(self.word_vectors(batch)[batch.index_N], batch, state)

    def word_vectors(self, batch: Batch) -> FloatArray:
        """Layer 0 of the distinct words (U, P)."""
        if self._lexicon is None:
            # The cache knows words as strings; here a word is its row of characters.
            keys = [row.tobytes().decode("latin-1") for row in batch.ids_UC]
            return self._cache.look_up(keys, self._from_rows)
        if batch.words is None:
            raise InputError("this model also knows whole words: give it words, not characters")
        return self._cache.look_up(batch.words, self._from_words)

    def _from_rows(self, rows: list[str]) -> FloatArray:
        raw = b"".join(row.encode("latin-1") for row in rows)
        ids_UC = np.frombuffer(raw, np.int16).reshape(len(rows), -1)
        characters_U = count_characters(ids_UC, self.bilm.characters.padding)
        return self._network.word_vectors(ids_UC, characters_U)

    def _from_words(self, words: list[str]) -> FloatArray:
        vectors_UP = self._network.word_vectors(*self.bilm.characters.encode(words))
        if self._lexicon is not None:
            vectors_UP += self._lexicon.vectors(words)
        return vectors_UP

    def contextualize(
        self, words_NP: FloatArray, batch: Batch, state: TensorState
    ) -> tuple[Tensor, TensorState]:
        """All layers and the state after, from the word vectors of each sentence."""
        state.check(self.config, rows=len(batch))
        if not len(batch):
            return torch.zeros(self.config.layers, 0, self.config.dim), state
        packing = batch.packing
        rows = packing.order.tolist()
        before = state.numpy()
        packed_LND, after = self._network.contextualize(
            words_NP[packing.source], packing, before.select(rows)
        )
        layers_LND = torch.from_numpy(packing.unpack(packed_LND))
        return layers_LND, TensorState.of(before.replace(rows, after))
