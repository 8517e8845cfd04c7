"""Word vectors that were computed before: the frequent words of a text are computed once.

Two generations of bounded size: words seen again move from the old to the young one, and when the
young one is full the old one is dropped, so that the frequent stay and the memory is bounded.
Invisible in the results: a vector from the cache is the vector that was computed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from elmokit.bilm.weights import FloatArray


class WordCache:
    """Maps words to their context-free vectors, within a bound on memory."""

    BYTES_PER_KEY = 200
    """About what a word costs beside its vector: the string, the array's head, the table."""

    def __init__(self, width: int, max_bytes: int) -> None:
        """A bound of 0 keeps nothing."""
        self._width = width
        self._generation_size = max_bytes // (2 * (4 * width + self.BYTES_PER_KEY))
        self._young: dict[str, FloatArray] = {}
        self._old: dict[str, FloatArray] = {}
        self._lock = threading.Lock()

    def look_up(
        self, words: Sequence[str], compute: Callable[[list[str]], FloatArray]
    ) -> FloatArray:
        """The vectors (U, P) of distinct words; `compute` is called for those not kept."""
        vectors_UP = np.empty((len(words), self._width), np.float32)
        missing: list[int] = []
        with self._lock:
            for i, word in enumerate(words):
                vector = self._young.get(word)
                if vector is None and (vector := self._old.get(word)) is not None:
                    self._keep(word, vector)
                if vector is None:
                    missing.append(i)
                else:
                    vectors_UP[i] = vector
        if missing:
            computed = compute([words[i] for i in missing])
            vectors_UP[missing] = computed
            with self._lock:
                # Copies, because a row of the result would keep the whole result alive.
                for i, vector in zip(missing, computed, strict=True):
                    self._keep(words[i], vector.copy())
        return vectors_UP

    def _keep(self, word: str, vector: FloatArray) -> None:
        if len(self._young) >= self._generation_size:
            self._young, self._old = {}, self._young
        if self._generation_size:
            self._young[word] = vector

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())
