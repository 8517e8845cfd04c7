"""The sentences of text files, as words, and how much of the files was read.

A directory that `elmo corpus` made stands for its held-out text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.text.files import TextFile, find_files
from elmokit.train.chunks import Form, read_chunk
from elmokit.train.corpus import Corpus

BLOCK_BYTES = 1 << 18


class Text:
    """The sentences of all files, one after another, and how many bytes were read."""

    def __init__(
        self, names: Sequence[str], form: Form = "running", column: str | None = None
    ) -> None:
        """Files, patterns, directories or `-`; `form` says what a line of them is."""
        self._form = form
        self._parts: list[Path | TextFile] = []
        for name in names:
            if (place := Path(name).expanduser() / "corpus.json").is_file():
                self._parts.append(place.parent)
            else:
                self._parts += [TextFile(file, column) for file in find_files([name])]

    @property
    def size(self) -> int | None:
        """The bytes to read, where that can be known."""
        sizes = [None if isinstance(part, Path) else part.size for part in self._parts]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    @property
    def position(self) -> int:
        """The bytes that were read."""
        return sum(part.position for part in self._parts if not isinstance(part, Path))

    def __iter__(self) -> Iterator[list[str]]:
        """Sentence by sentence."""
        for part in self._parts:
            if isinstance(part, Path):
                yield from Corpus.open(part).held_out()
                continue
            for block in part.blocks(BLOCK_BYTES):
                yield from read_chunk([block], self._form).sentences()
