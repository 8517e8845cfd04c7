"""Reading text files as sentences of words, with the number of bytes read.

A directory that `elmo corpus` made stands for its held-out text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.text.files import TextFile, find_files
from elmokit.train.chunks import TextForm, read_chunk
from elmokit.train.corpus import MANIFEST, Corpus

BLOCK_BYTES = 1 << 18
"""Bytes of text that are read at a time."""


def is_corpus(path: str | Path) -> bool:
    """Return whether a path is a directory that `elmo corpus` made."""
    return (Path(path).expanduser() / MANIFEST).is_file()


class TextReader:
    """The sentences of some files, one after another; iterate over it once."""

    def __init__(
        self, paths: Sequence[str], form: TextForm = "running", column: str | None = None
    ) -> None:
        """Find the files.

        Args:
            paths: Files, patterns, directories, corpora, or `-` for stdin.
            form: What a line of the files is.
            column: Name of the text column in Parquet files.
        """
        self._form = form
        self._parts: list[Path | TextFile] = []
        for path in paths:
            if is_corpus(path):
                self._parts.append(Path(path).expanduser())
            else:
                self._parts += [TextFile(file, column) for file in find_files([path])]

    @property
    def size(self) -> int | None:
        """Number of bytes to read, or None if that is unknown."""
        sizes = [None if isinstance(part, Path) else part.size for part in self._parts]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    @property
    def position(self) -> int:
        """Number of bytes read so far."""
        return sum(part.position for part in self._parts if not isinstance(part, Path))

    def __iter__(self) -> Iterator[list[str]]:
        """Yield each sentence as a list of words."""
        for part in self._parts:
            if isinstance(part, Path):
                yield from Corpus.open(part).held_out_sentences()
                continue
            for block in part.blocks(BLOCK_BYTES, self._form == "wrapped"):
                yield from read_chunk([block], self._form).sentences()
