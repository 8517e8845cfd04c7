"""A cache of word vectors, so that the frequent words of a text are computed once.

It has two generations of bounded size. Words that are used again move from the old generation to
the young one; when the young one is full, the old one is dropped. So the frequent words stay and
the memory is bounded. The cache never changes results: it returns the vectors that were computed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from elmokit.bilm.weights import FloatArray


class WordCache:
    """Maps words to their context-free vectors, within a bound on memory.

    It may be used from several threads, and in forked processes.
    """

    BYTES_PER_KEY = 200
    """Approximate bytes per word besides its vector: the string, the array header, the table."""

    def __init__(self, width: int, max_bytes: int) -> None:
        """Create an empty cache.

        Args:
            width: Size P of a word vector.
            max_bytes: Upper bound on the memory; 0 turns the cache off.
        """
        self._width = width
        self._generation_size = max_bytes // (2 * (4 * width + self.BYTES_PER_KEY))
        self._young: dict[str, FloatArray] = {}
        self._old: dict[str, FloatArray] = {}
        self._lock = threading.Lock()
        _caches.add(self)

    def look_up(
        self, words: Sequence[str], compute: Callable[[list[str]], FloatArray]
    ) -> FloatArray:
        """Return the vectors (U, P) of distinct words; `compute` is called for those not cached."""
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


_caches: weakref.WeakSet[WordCache] = weakref.WeakSet()


def _renew_locks() -> None:
    """Give every cache a new lock: in a forked process no thread is left to release the old."""
    for cache in list(_caches):
        cache._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
