"""The data sets that the built-in model is made of and measured on, by name, from one directory.

A text is `NAME.txt`, or compressed as `NAME.txt.xz`; a set of files is the directory `NAME`, or
packed as `NAME.tar.xz`. Knows nothing about models.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import InputError
from elmokit.text.files import TextFile
from elmokit.train.chunks import read_chunk
from elmokit.train.reading import Text


def find(directory: Path, name: str, *endings: str) -> Path:
    """The file or directory of a data set."""
    for ending in endings:
        if (place := directory / f"{name}{ending}").exists():
            return place
    wanted = " or ".join(f"{name}{ending}" for ending in endings)
    raise InputError(f"{directory} has no {wanted}; give the directory of the data with --data")


def sentences(directory: Path, name: str) -> Iterator[list[str]]:
    """The words of each sentence of a running text, as `elmo perplexity` reads it."""
    return iter(Text([_file(directory, name)]))


def sentences_with(directory: Path, name: str, word: str, number: int) -> Iterator[list[str]]:
    """The first sentences of a running text in which a word occurs, at most so many."""
    left = number
    for block in TextFile(_file(directory, name)).blocks(1 << 18):
        # Most lines are without it, and cutting them would be most of the work.
        lines = [line for line in block.data.split(b"\n") if word.encode() in line]
        chunk = read_chunk([block._replace(data=b"\n".join(lines))], "running")
        for words in chunk.sentences():
            if word in words:
                yield words
                left -= 1
                if not left:
                    return


def _file(directory: Path, name: str) -> str:
    return str(find(directory, name, ".txt", ".txt.xz"))


@contextmanager
def unpacked(directory: Path, name: str) -> Iterator[Path]:
    """The directory of a set of files."""
    place = find(directory, name, "", ".tar.xz")
    if place.is_dir():
        yield place
        return
    with tempfile.TemporaryDirectory() as stage:
        with tarfile.open(place) as archive:
            archive.extractall(stage, filter="data")
        inside = Path(stage) / name
        if not inside.is_dir():
            raise InputError(f"{place} has no directory {name}/; expected the files in it")
        yield inside
