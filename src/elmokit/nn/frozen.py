"""The frozen biLM on tensors: the fast engine with the calling convention of `BiLMModule`.

It has no gradients and no parameters, and caches the vectors of frequent words between calls. It
runs on the CPU, wherever the model that uses it runs.
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
    """A biLM whose weights do not change, run by the engine."""

    def __init__(
        self,
        bilm: BiLM,
        *,
        dtype: str = "float32",
        threads: int | None = None,
        cache_bytes: int = WORD_CACHE_BYTES,
    ) -> None:
        """Prepare the engine.

        Args:
            bilm: Model to run.
            dtype: Precision of the engine, as in `Elmo.load`.
            threads: Number of threads, as in `Elmo.load`.
            cache_bytes: Largest size of the cache of word vectors, in bytes.
        """
        self.bilm = bilm
        self.config = bilm.config
        self._copy = partial(FrozenBiLM, dtype=dtype, threads=threads, cache_bytes=cache_bytes)
        self._network = choose_network(bilm, dtype, threads)
        self._lexicon = Lexicon.from_bilm(bilm)
        self._cache = WordCache(self.config.lstm.width, cache_bytes)

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenBiLM:
        """Return itself: nothing in it changes, so copies of a task model can share it."""
        return self

    def __reduce__(self) -> Any:
        """Pickle the weights; unpickling prepares a new engine."""
        return self._copy, (self.bilm,)

    def settle(self) -> TensorState:
        """Return the state that every sentence starts from by default (one row)."""
        settled = self.bilm.settled
        if settled is None:
            settled = Runner(self.bilm, self._network, cache_bytes=0).settle()
        return TensorState.from_state(settled)

    def __call__(self, batch: Batch, state: TensorState) -> tuple[Tensor, TensorState]:
        """Return all layers (L+1, N, D) of a batch, and the state after it.

        `batch.pad` arranges the layers as (L+1, B, T, D).
        """
        return self.contextualize(self.word_vectors(batch)[batch.index_N], batch, state)

    def word_vectors(self, batch: Batch) -> FloatArray:
        """Return layer 0 of the distinct words (U, P)."""
        if self._lexicon is None:
            # The cache has strings as keys; here a word is its row of character ids.
            keys = [row.tobytes().decode("latin-1") for row in batch.ids_UC]
            return self._cache.look_up(keys, self._compute_from_ids)
        if batch.words is None:
            raise InputError(
                "this model also has vectors of whole words; give it words, not character ids"
            )
        return self._cache.look_up(batch.words, self._compute_from_words)

    def _compute_from_ids(self, keys: list[str]) -> FloatArray:
        raw = b"".join(key.encode("latin-1") for key in keys)
        ids_UC = np.frombuffer(raw, np.int16).reshape(len(keys), -1)
        characters_U = count_characters(ids_UC, self.bilm.characters.padding)
        return self._network.word_vectors(ids_UC, characters_U)

    def _compute_from_words(self, words: list[str]) -> FloatArray:
        vectors_UP = self._network.word_vectors(*self.bilm.characters.encode(words))
        if self._lexicon is not None:
            vectors_UP += self._lexicon.vectors(words)
        return vectors_UP

    def contextualize(
        self, words_NP: FloatArray, batch: Batch, state: TensorState
    ) -> tuple[Tensor, TensorState]:
        """Return all layers (L+1, N, D), given the word vectors, and the state after the batch."""
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
        return layers_LND, TensorState.from_state(before.replace(rows, after))
