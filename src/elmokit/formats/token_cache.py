"""Token caches of bilm-tf: the context-free vectors of a vocabulary, computed once and kept.

An HDF5 file with one dataset, `embedding` (V, P): row i is layer 0 of the word in line i of a
vocabulary file, the sentence marks `<S>` and `</S>` among them. (bilm-tf adds a row of zeros for
padding when it loads one.) bilm-tf reads words outside the vocabulary as `<UNK>`; here they are
computed from their characters as ever, so that a cache changes speed and, but for the rounding of
whoever computed it, nothing else.

    cache = read("tokens.hdf5", "vocab.txt")
    vectors = cache.look_up(words, compute)        # (U, P); compute is asked for the others
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import ElmoError, FormatError, InputError, ModelNotFound
from elmokit.formats.hdf5 import check_inside, numbers
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import Vocabulary

DATASET = "embedding"
NO_WORD = "!!!MAXTERMID"
"""A line of some vocabulary files that bilm-tf skips: it has no row."""
CHECKED_WORDS = 64
"""How many rows are compared with a model …"""
TOLERANCE = 1e-3
"""… and how far they may be apart, against values of order one."""
LARGEST_EXPANSION = 16
"""A dataset that is so many times larger than its file was made to exhaust memory."""

Compute = Callable[[list[str]], FloatArray]


class TokenCache(Mapping[str, FloatArray]):
    """Words with their vectors, as a mapping; never changes."""

    def __init__(self, words: Sequence[str], vectors: npt.NDArray[Any], where: str = "") -> None:
        """Row i of `vectors` (V, P) belongs to word i; of equal words the first counts."""
        if vectors.ndim != 2 or len(vectors) != len(words):
            raise FormatError(
                f"{where or 'the token cache'}: the vectors have the shape {vectors.shape}, the "
                f"vocabulary {len(words)} words; expected a row for each. "
                "Is it the vocabulary that the cache was made of?"
            )
        self.words = words
        self.vectors = vectors
        self._where = where or "the token cache"
        self._rows: dict[str, int] = {}
        for row, word in enumerate(words):
            self._rows.setdefault(word, row)

    @property
    def width(self) -> int:
        """P."""
        return int(self.vectors.shape[1])

    def look_up(self, words: Sequence[str], compute: Compute) -> FloatArray:
        """The vectors (U, P) of distinct words; `compute` is called for those not in the cache."""
        rows_U = np.array([self._rows.get(word, -1) for word in words], np.int64)
        found = rows_U >= 0
        vectors_UP = np.empty((len(words), self.width), np.float32)
        vectors_UP[found] = self.vectors[rows_U[found]]
        if not np.isfinite(vectors_UP[found]).all():
            raise FormatError(f"{self._where} holds NaN or infinite numbers; the file is damaged")
        others = [word for word, kept in zip(words, found, strict=True) if not kept]
        if others:
            vectors_UP[~found] = compute(others)
        return vectors_UP

    def check(self, width: int, compute: Compute) -> None:
        """Raise `InputError` unless the vectors are those of the model that `compute` runs."""
        if width != self.width:
            raise InputError(
                f"{self._where} holds vectors of {self.width} numbers, the model has {width}; "
                "it was made with another model"
            )
        step = max(1, len(self.words) // CHECKED_WORDS)
        some = list(dict.fromkeys([BOS, EOS, *self.words[::step]]))
        some = [word for word in some if word in self._rows]
        if not some:
            return
        kept = self.look_up(some, compute)
        apart = np.abs(kept - compute(some)).max(axis=1)
        if apart.max() > TOLERANCE:
            word = some[int(apart.argmax())]
            raise InputError(
                f"{self._where}: the vector of {word!r} is {apart.max():.2g} away from what the "
                "model computes; it was made with another model, or for another vocabulary"
            )

    def __getitem__(self, word: str) -> FloatArray:
        row: FloatArray = self.vectors[self._rows[word]]
        return row

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"TokenCache({len(self)} words of {self.width})"


def read(path: str | Path, vocabulary: str | Path | Sequence[str] | None = None) -> TokenCache:
    """Read a cache; `vocabulary` is its file or its words, by default the file written beside."""
    place = Path(path).expanduser()
    words = _words(vocabulary_path(place) if vocabulary is None else vocabulary)
    if not place.is_file():
        raise ModelNotFound(f"no token cache at {path}; expected an HDF5 file with `{DATASET}`")
    return TokenCache(words, _vectors(place), str(path))


def write(path: str | Path, words: Sequence[str], vectors: npt.NDArray[Any]) -> list[Path]:
    """Write a cache and its vocabulary file (`X.vocab.txt` beside `X.hdf5`); returns the files.

    bilm-tf finds the sentence marks and `<UNK>` by their names, so they must be among the words:
    see `with_marks`.
    """
    missing = Vocabulary(words).missing_marks()
    if missing:
        raise InputError(f"the words of a token cache lack {', '.join(missing)}")
    for i, word in enumerate(words):
        if word != word.strip() or "\n" in word or "\r" in word or word == NO_WORD:
            raise InputError(
                f"word {i} is {word!r}; a vocabulary file keeps no spaces around words, "
                f"no line breaks in them, and no {NO_WORD}"
            )
    rows = TokenCache(words, np.asarray(vectors)).vectors
    place = Path(path).expanduser()
    if place.is_dir():
        raise InputError(f"{path} is a directory; expected a file name to write to")
    place.parent.mkdir(parents=True, exist_ok=True)
    import h5py

    text = vocabulary_path(place)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=place.parent) as stage:
        with h5py.File(Path(stage) / place.name, "w") as file:
            file.create_dataset(DATASET, data=rows, dtype="float32")
        (Path(stage) / text.name).write_bytes(Vocabulary(words).dump())
        for file_path in (text, place):
            os.replace(Path(stage) / file_path.name, file_path)
    return [place, text]


def with_marks(words: Sequence[str]) -> list[str]:
    """The words once each, the marks `<S>`, `</S>` and `<UNK>` first where they are missing."""
    missing = Vocabulary(words).missing_marks()
    return list(dict.fromkeys([*missing, *words]))


def vocabulary_path(path: Path) -> Path:
    """Where `write` puts the words of a cache."""
    return path.with_suffix(".vocab.txt")


def _words(vocabulary: str | Path | Sequence[str]) -> Sequence[str]:
    """The words that have a row, as bilm-tf counts them."""
    if not isinstance(vocabulary, (str, Path)):
        return list(vocabulary)
    place = Path(vocabulary).expanduser()
    if not place.is_file():
        raise ModelNotFound(
            f"no vocabulary at {vocabulary}; a token cache needs the file of words it was made of"
        )
    stripped = (word.strip() for word in Vocabulary.read(place))
    return [word for word in stripped if word != NO_WORD]


def _vectors(path: Path) -> npt.NDArray[Any]:
    """The dataset: a view of the file where it lies there in one piece."""
    import h5py

    try:
        with path.open("rb") as raw, h5py.File(raw, "r") as file:
            link = file.get(DATASET, getlink=True)
            dataset: Any = file[DATASET] if isinstance(link, h5py.HardLink) else None
            _check(dataset, path, list(file))
            return numbers(dataset, np.memmap(path, np.uint8, "r")).astype(np.float32, copy=False)
    except ElmoError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # h5py's, on damage
        raise FormatError(f"{path} cannot be read as HDF5: {error}") from None


def _check(dataset: Any, path: Path, names: list[str]) -> None:
    import h5py

    if not isinstance(dataset, h5py.Dataset):
        raise FormatError(
            f"{path} is no token cache: it holds {', '.join(names[:4]) or 'nothing'}; "
            f"expected a dataset `{DATASET}`"
        )
    check_inside(dataset, str(path), DATASET)
    if dataset.dtype.kind != "f" or dataset.ndim != 2:
        raise FormatError(
            f"{path}: {DATASET} is {dataset.dtype} {dataset.shape}; expected floats (V, P)"
        )
    if dataset.nbytes > LARGEST_EXPANSION * path.stat().st_size:
        raise FormatError(
            f"{path}: {DATASET} claims {dataset.nbytes:,} bytes, the file has "
            f"{path.stat().st_size:,}; it is truncated or damaged"
        )
