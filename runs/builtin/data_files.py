"""The data sets that the built-in model is trained and measured on, by name, in one directory.

A text is the file `NAME.txt`, or `NAME.txt.xz` if it is compressed. A set of files is the directory
`NAME`, or the archive `NAME.tar.xz`. Knows nothing about models.
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
from elmokit.train.text_reader import TextReader


def find_data(directory: Path, name: str, *suffixes: str) -> Path:
    """Return the path of a data set: the first that exists of its name with each suffix."""
    for suffix in suffixes:
        if (path := directory / f"{name}{suffix}").exists():
            return path
    expected = " or ".join(f"{name}{suffix}" for suffix in suffixes)
    raise InputError(f"{directory} has no {expected}; name the directory of the data with --data")


def read_sentences(directory: Path, name: str) -> Iterator[list[str]]:
    """Return the sentences of a running text as words, as `elmo perplexity` reads them."""
    return iter(TextReader([_text_file(directory, name)]))


def sentences_with_word(directory: Path, name: str, word: str, number: int) -> Iterator[list[str]]:
    """Yield the first sentences of a running text that contain a word, at most `number`."""
    remaining = number
    for block in TextFile(_text_file(directory, name)).blocks(1 << 18):
        # Most lines do not have the word, and tokenizing them would be most of the work.
        lines = [line for line in block.data.split(b"\n") if word.encode() in line]
        chunk = read_chunk([block._replace(data=b"\n".join(lines))], "running")
        for words in chunk.sentences():
            if word in words:
                yield words
                remaining -= 1
                if not remaining:
                    return


def _text_file(directory: Path, name: str) -> str:
    return str(find_data(directory, name, ".txt", ".txt.xz"))


@contextmanager
def unpacked_data(directory: Path, name: str) -> Iterator[Path]:
    """Provide the directory of a set of files, unpacked for as long as it is needed."""
    path = find_data(directory, name, "", ".tar.xz")
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as stage:
        with tarfile.open(path) as archive:
            archive.extractall(stage, filter="data")
        inside = Path(stage) / name
        if not inside.is_dir():
            raise InputError(f"{path} has no directory {name}/; expected the files in it")
        yield inside
