"""Token caches of bilm-tf: the context-free vectors of a vocabulary, computed once and stored.

A token cache is an HDF5 file with one dataset, `embedding` (V, P): row i is layer 0 of the word in
line i of a vocabulary file, which includes the sentence marks `<S>` and `</S>`. (bilm-tf adds a row
of zeros for padding when it loads one.) bilm-tf reads words outside the vocabulary as `<UNK>`; here
they are computed from their characters as usual, so that a cache changes the speed and, except for
rounding, nothing else.

A cache that elmokit wrote has checksums besides, which bilm-tf ignores:

    elmokit/checksums    (V,) uint32, the CRC-32 of each row; attributes `checksum` (SHA-256 of
                         these and of the shape) and `words` (SHA-256 of the words)

    cache = read("tokens.hdf5", "vocab.txt")
    vectors = cache.look_up(words, compute)        # (U, P); compute makes the missing ones
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, InputError, ModelNotFound
from elmokit.formats.checked_rows import CheckedRows, row_checksums
from elmokit.formats.hdf5 import HDF5Dataset, HDF5Group, open_hdf5, read_array
from elmokit.formats.hdf5_writing import create_group, create_hdf5, write_dataset
from elmokit.formats.stored_arrays import AnyArray, StoredArray, WeightsFile
from elmokit.staging import replace_files, try_to_finish
from elmokit.storage import explain_write_errors
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import Vocabulary

DATASET = "embedding"
GROUP = "elmokit"
CHECKSUMS = f"{GROUP}/checksums"
NO_WORD = "!!!MAXTERMID"
"""A line of some vocabulary files that bilm-tf skips, since it has no row."""
CHECKED_WORDS = 64
"""Number of rows that are compared with a model."""
TOLERANCE = 1e-3
"""Difference between a row and the model at most; values are of order one."""
LARGEST_EXPANSION = 16
"""Size of the dataset at most, in multiples of the file size: more would exhaust the memory."""

ComputeVectors = Callable[[list[str]], FloatArray]
"""Computes the context-free vectors (U, P) of words."""


class TokenCache(Mapping[str, FloatArray]):
    """An immutable mapping from words to their context-free vectors."""

    def __init__(
        self, words: Sequence[str], vectors: AnyArray | CheckedRows, where: str = ""
    ) -> None:
        """Store the words and their vectors.

        Args:
            words: The words; of equal words the first counts.
            vectors: One row per word, (V, P).
            where: Name of the file for error messages.
        """
        if len(vectors.shape) != 2 or vectors.shape[0] != len(words):
            raise FormatError(
                f"{where or 'the token cache'}: the vectors have the shape {vectors.shape}, but "
                f"the vocabulary has {len(words)} words; expected one row per word. Was the cache "
                "made with this vocabulary?"
            )
        self.words = words
        self.vectors = vectors
        self._where = where or "the token cache"
        self._rows: dict[str, int] = {}
        for row, word in enumerate(words):
            self._rows.setdefault(word, row)

    @property
    def width(self) -> int:
        """Size P of a vector."""
        return int(self.vectors.shape[1])

    def look_up(self, words: Sequence[str], compute: ComputeVectors) -> FloatArray:
        """Return the vectors (U, P) of distinct words.

        Args:
            words: The words.
            compute: Called for the words that are not in the cache.
        """
        rows_U = np.array([self._rows.get(word, -1) for word in words], np.int64)
        cached_U = rows_U >= 0
        vectors_UP = np.empty((len(words), self.width), np.float32)
        vectors_UP[cached_U] = self._take(rows_U[cached_U])
        if not np.isfinite(vectors_UP[cached_U]).all():
            raise FormatError(f"{self._where} holds NaN or infinite numbers; the file is damaged")
        missing = [word for word, cached in zip(words, cached_U, strict=True) if not cached]
        if missing:
            vectors_UP[~cached_U] = compute(missing)
        return vectors_UP

    def check(self, width: int, compute: ComputeVectors) -> None:
        """Raise `InputError` unless a sample of the vectors equals what a model computes.

        Args:
            width: Size of the vectors of the model.
            compute: Computes vectors with the model.
        """
        if width != self.width:
            raise InputError(
                f"{self._where} holds vectors of {self.width} numbers, the model has vectors of "
                f"{width}; the cache was made with another model"
            )
        step = max(1, len(self.words) // CHECKED_WORDS)
        sample = list(dict.fromkeys([BOS, EOS, *self.words[::step]]))
        sample = [word for word in sample if word in self._rows]
        if not sample:
            return
        cached = self.look_up(sample, compute)
        difference = np.abs(cached - compute(sample)).max(axis=1)
        if difference.max() > TOLERANCE:
            word = sample[int(difference.argmax())]
            raise InputError(
                f"{self._where}: the vector of {word!r} differs by {difference.max():.2g} from "
                "what the model computes; the cache was made with another model or vocabulary"
            )

    def __getitem__(self, word: str) -> FloatArray:
        row: FloatArray = self._take(np.array([self._rows[word]]))[0]
        return row

    def _take(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        if isinstance(self.vectors, StoredArray):
            return self.vectors.take(rows).astype(np.float32, copy=False)
        return self.vectors[rows].astype(np.float32, copy=False)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"TokenCache({len(self)} words of {self.width})"


def read(path: str | Path, vocabulary: str | Path | Sequence[str] | None = None) -> TokenCache:
    """Read a token cache.

    Args:
        path: The HDF5 file.
        vocabulary: Its vocabulary file or its words; by default the file that `write` puts beside.
    """
    file = Path(path).expanduser()
    try_to_finish(file.parent)
    words = _read_words(vocabulary_path(file) if vocabulary is None else vocabulary)
    if not file.is_file():
        raise ModelNotFound(
            f"no token cache at {path}; expected an HDF5 file with a dataset `{DATASET}`"
        )
    return TokenCache(words, _read_vectors(file, words), str(path))


def write(path: str | Path, words: Sequence[str], vectors: npt.NDArray[Any]) -> list[Path]:
    """Write a token cache and its vocabulary file, and return the files.

    Args:
        path: The HDF5 file, `X.hdf5`; the vocabulary file is `X.vocab.txt` beside it.
        words: The words. bilm-tf finds the sentence marks and `<UNK>` by their names, so they must
            be among the words: see `add_marks`.
        vectors: One row per word, (V, P).
    """
    missing = Vocabulary(words).missing_marks()
    if missing:
        raise InputError(
            f"the words of a token cache lack {', '.join(missing)}; add them with add_marks(words)"
        )
    for i, word in enumerate(words):
        if word != word.strip() or "\n" in word or "\r" in word or word == NO_WORD:
            raise InputError(
                f"word {i} is {word!r}; a vocabulary file cannot store spaces around words, line "
                f"breaks in them, or {NO_WORD}"
            )
    rows = np.asarray(vectors)
    TokenCache(words, rows)  # raises if they do not fit
    target = Path(path).expanduser()
    if target.is_dir():
        raise InputError(f"{path} is a directory; expected the name of a file to write")
    vocabulary = vocabulary_path(target)
    with explain_write_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with replace_files(target.parent, target.name) as stage:
            _write_vectors(stage / target.name, words, rows.astype(np.float32, copy=False))
            (stage / vocabulary.name).write_bytes(Vocabulary(words).dump())
    return [target, vocabulary]


def _write_vectors(path: Path, words: Sequence[str], rows: npt.NDArray[np.float32]) -> None:
    import h5py

    # The format of HDF5 1.8 (2008) has checksums of everything but the numbers.
    library = (h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
    with create_hdf5(path, library=library) as file:
        write_dataset(file, DATASET, rows)
        create_group(file, GROUP)
        checksums = row_checksums(rows)
        write_dataset(file, CHECKSUMS, checksums)
        attributes = file[CHECKSUMS].attrs
        attributes["checksum"] = np.bytes_(_hash_checksums(checksums, rows.shape))
        attributes["words"] = np.bytes_(_hash_words(words))


def _hash_checksums(checksums: npt.NDArray[np.uint32], shape: tuple[int, ...]) -> bytes:
    content = f"{shape[0]} {shape[1]} ".encode() + checksums.astype("<u4").tobytes()
    return hashlib.sha256(content).hexdigest().encode()


def _hash_words(words: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest().encode()


def add_marks(words: Sequence[str]) -> list[str]:
    """Return the distinct words, after those of `<S>`, `</S>` and `<UNK>` that were missing."""
    missing = Vocabulary(words).missing_marks()
    return list(dict.fromkeys([*missing, *words]))


def vocabulary_path(path: Path) -> Path:
    """Return the path of the vocabulary file that belongs to a cache."""
    return path.with_suffix(".vocab.txt")


def _read_words(vocabulary: str | Path | Sequence[str]) -> Sequence[str]:
    """Return the words that have a row, as bilm-tf counts them."""
    if not isinstance(vocabulary, (str, Path)):
        return list(vocabulary)
    file = Path(vocabulary).expanduser()
    if not file.is_file():
        raise ModelNotFound(
            f"no vocabulary at {vocabulary}; expected the file of words that the token cache was "
            "made with"
        )
    stripped = (word.strip() for word in Vocabulary.read(file))
    return [word for word in stripped if word != NO_WORD]


def _read_vectors(path: Path, words: Sequence[str]) -> AnyArray | CheckedRows:
    """Return the dataset; in its file, if it is contiguous there."""
    try:
        with path.open("rb") as raw:
            file = open_hdf5(raw, str(path))
            dataset = _find(file, path)
            vectors = read_array(dataset, WeightsFile(path))
            checksums = _read_checksums(file, dataset.shape, path, words)
            if isinstance(vectors, StoredArray):
                if checksums is None:
                    return vectors
                place = vectors.offset
                return CheckedRows(path, vectors.dtype, vectors.shape, checksums, place)
            if checksums is not None and not np.array_equal(row_checksums(vectors), checksums):
                raise FormatError(f"{path} is damaged: the checksum of a row differs")
            return vectors.astype(np.float32)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error}") from None


def _read_checksums(
    file: HDF5Group, shape: tuple[int, ...], path: Path, words: Sequence[str]
) -> npt.NDArray[np.uint32] | None:
    """Return the checksum of each row; None if another program or an earlier version wrote."""
    if GROUP not in file:
        return None
    dataset = file.open(CHECKSUMS)
    if dataset.shape != shape[:1] or dataset.dtype != np.uint32:
        raise FormatError(
            f"{path} is damaged: its checksums are {dataset.dtype} of shape {dataset.shape}"
        )
    checksums: npt.NDArray[np.uint32] = dataset.read()
    stored = [dataset.attribute(name) for name in ("checksum", "words")]
    if not isinstance(stored[0], bytes) or stored[0] != _hash_checksums(checksums, shape):
        raise FormatError(f"{path} is damaged: its checksums have changed; make the cache again")
    if not isinstance(stored[1], bytes) or stored[1] != _hash_words(words):
        raise FormatError(
            f"{path} was made with other words than those of its vocabulary, or the vocabulary is "
            "damaged; give the vocabulary it was made with, or make the cache again"
        )
    return checksums


def _find(file: HDF5Group, path: Path) -> HDF5Dataset:
    """Return the dataset of a token cache, or raise `FormatError`."""
    dataset = file.find(DATASET)
    if not isinstance(dataset, HDF5Dataset):
        names = [name[:60] for name in islice(file, 4)]
        raise FormatError(
            f"{path} is not a token cache: it holds {', '.join(names) or 'nothing'}; "
            f"expected a dataset `{DATASET}`"
        )
    if dataset.dtype.kind != "f" or dataset.dtype.itemsize > 8 or len(dataset.shape) != 2:
        raise FormatError(
            f"{path}: {DATASET} is {dataset.dtype} of shape {dataset.shape}; expected floats of "
            "shape (V, P)"
        )
    if dataset.nbytes > LARGEST_EXPANSION * path.stat().st_size:
        raise FormatError(
            f"{path} is truncated or damaged: {DATASET} claims {dataset.nbytes:,} bytes, the file "
            f"has {path.stat().st_size:,}"
        )
    return dataset
