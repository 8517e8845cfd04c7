"""The data sets that the built-in model is made of and measured on, by name, from one directory.

A text is `NAME.txt`, or compressed as `NAME.txt.xz`; a set of files is the directory `NAME`, or
packed as `NAME.tar.xz`. Knows nothing about models.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import InputError
from elmokit.text.files import Block, TextFile
from elmokit.train.chunks import read_chunk


def find(directory: Path, name: str, *endings: str) -> Path:
    """The file or directory of a data set."""
    for ending in endings:
        if (place := directory / f"{name}{ending}").exists():
            return place
    wanted = " or ".join(f"{name}{ending}" for ending in endings)
    raise InputError(f"{directory} has no {wanted}; give the directory of the data with --data")


def sentences(directory: Path, name: str) -> Iterator[list[str]]:
    """The words of each sentence of a running text, as `elmo perplexity` reads it."""
    for block in _blocks(directory, name):
        yield from _sentences(block)


def sentences_with(directory: Path, name: str, word: str, number: int) -> Iterator[list[str]]:
    """The first sentences of a running text in which a word occurs, at most so many."""
    left = number
    for block in _blocks(directory, name):
        # Most lines are without it, and cutting them would be most of the work.
        lines = [line for line in block.data.split(b"\n") if word.encode() in line]
        for words in _sentences(block._replace(data=b"\n".join(lines))):
            if word in words:
                yield words
                left -= 1
                if not left:
                    return


def _blocks(directory: Path, name: str) -> Iterator[Block]:
    return TextFile(str(find(directory, name, ".txt", ".txt.xz"))).blocks(1 << 18)


def _sentences(block: Block) -> Iterator[list[str]]:
    chunk = read_chunk([block], "running")
    place = 0
    for length in chunk.lengths_S.tolist():
        yield [chunk.words[i] for i in chunk.ids_N[place : place + length].tolist()]
        place += length


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


def sha256(path: Path) -> str:
    """Of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
