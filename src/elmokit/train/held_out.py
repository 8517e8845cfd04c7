"""Choosing the held-out lines of a text, by a hash of their characters.

So the choice depends neither on the order of the text nor on the number of processes, and all
copies of a repeated line are in the same split. Lines are held out whose hash is below a bound;
the bound is lowered until no more than enough words are left.

Shape letters: S sentences of a chunk.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MAX_HELD_OUT_WORDS = 200_000
"""Largest number of held-out words; more would not make perplexities more precise."""
_MAX_TRACKED_LINES = 1 << 20


class HeldOutSelector:
    """Chooses the held-out lines: `add` every chunk, call `finalize`, then ask `is_held_out`."""

    def __init__(self, fraction: float, max_words: int = MAX_HELD_OUT_WORDS) -> None:
        """Hold out about this fraction of the lines, but at most `max_words` words."""
        self._max_words = max_words
        self._bound = int(fraction * 2**64)  # smaller hashes are held out
        self._words: dict[int, int] = {}  # words per line, by the hash of the line
        self._smallest: dict[int, int] = {}  # smallest hash per chunk

    def add(
        self, chunk: int, keys_S: npt.NDArray[np.uint64], lengths_S: npt.NDArray[np.int32]
    ) -> None:
        """Consider the sentences of a chunk, given the hash of their line and their lengths."""
        chosen_S = self.is_held_out(keys_S)
        if not chosen_S.any():
            return
        keys = keys_S[chosen_S].tolist()
        for key, length in zip(keys, lengths_S[chosen_S].tolist(), strict=True):
            self._words[key] = self._words.get(key, 0) + length
        self._smallest[chunk] = min(keys)
        if len(self._words) > _MAX_TRACKED_LINES:
            self._lower_bound()

    def finalize(self) -> int:
        """Make the choice after the last `add`; return the number of held-out words."""
        self._lower_bound()
        return sum(self._words.values())

    def chunks(self) -> list[int]:
        """Return the numbers of the chunks that have held-out sentences."""
        return [chunk for chunk, key in self._smallest.items() if key < self._bound]

    def is_held_out(self, keys_S: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return for each sentence, by the hash of its line, whether it is held out."""
        if not self._bound:
            return np.zeros(len(keys_S), np.bool_)
        return keys_S <= np.uint64(self._bound - 1)

    def clear(self) -> None:
        """Hold out nothing."""
        self._bound = 0
        self._words.clear()
        self._smallest.clear()

    def _lower_bound(self) -> None:
        total = 0
        for key in sorted(self._words):
            total += self._words[key]
            if total > self._max_words:
                self._bound = key
                break
        self._words = {key: words for key, words in self._words.items() if key < self._bound}
