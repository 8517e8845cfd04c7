"""Choosing the lines of a text to hold out, by a hash of what they say.

So the choice does not depend on the order of the text nor on who reads it, and a line that comes
twice is wholly on one side. Of the lines whose hash is below a bound those with the smallest are
taken, until there are enough words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ENOUGH = 200_000
"""Words; more held-out text measures nothing better."""
_MANY = 1 << 20


class HeldOut:
    """The choice: `add` all of the text, `settle`, then ask."""

    def __init__(self, fraction: float, enough: int = ENOUGH) -> None:
        """Hold out about that fraction of the lines, and no more than `enough` words."""
        self._enough = enough
        self._bound = int(fraction * 2**64)  # hashes below it are chosen
        self._words: dict[int, int] = {}  # by hash
        self._chunks: dict[int, int] = {}  # the smallest hash of each

    def add(
        self, chunk: int, keys_S: npt.NDArray[np.uint64], lengths_S: npt.NDArray[np.int32]
    ) -> None:
        """Look at the sentences of a chunk, which are known by the hash of their line."""
        chosen_S = self.chosen(keys_S)
        if not chosen_S.any():
            return
        keys = keys_S[chosen_S].tolist()
        for key, length in zip(keys, lengths_S[chosen_S].tolist(), strict=True):
            self._words[key] = self._words.get(key, 0) + length
        self._chunks[chunk] = min(keys)
        if len(self._words) > _MANY:
            self._tighten()

    def settle(self) -> int:
        """Make the choice, when all were looked at; gives the words that are held out."""
        self._tighten()
        return sum(self._words.values())

    def chunks(self) -> list[int]:
        """The chunks with sentences that are held out."""
        return [chunk for chunk, key in self._chunks.items() if key < self._bound]

    def chosen(self, keys_S: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which sentences are held out."""
        if not self._bound:
            return np.zeros(len(keys_S), np.bool_)
        return keys_S <= np.uint64(self._bound - 1)

    def clear(self) -> None:
        """Hold out nothing."""
        self._bound = 0
        self._words.clear()
        self._chunks.clear()

    def _tighten(self) -> None:
        """Lower the bound until no more than enough words are left."""
        total = 0
        for key in sorted(self._words):
            total += self._words[key]
            if total > self._enough:
                self._bound = key
                break
        self._words = {key: words for key, words in self._words.items() if key < self._bound}
