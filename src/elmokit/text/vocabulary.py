"""The words a language model predicts, most frequent first, as `vocab.txt` lists them.

A biLM reads any word by its characters; the vocabulary is only what it can *predict*. Line i is
word i: `<S>`, `</S>`, `<UNK>`, then the others. Knows nothing about weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

from elmokit.errors import FormatError
from elmokit.text.characters import BOS, EOS
from elmokit.text.files import read_bytes

UNKNOWN = "<UNK>"
"""The entry that stands for all words outside the vocabulary."""


class Vocabulary(Sequence[str]):
    """An ordered list of words with a fast `index_of(word)`."""

    def __init__(self, words: Iterable[str]) -> None:
        """Store the words unchanged, so that a file that is read and written stays the same."""
        self._words = tuple(words)

    @classmethod
    def parse(cls, data: bytes, source: str = "vocab.txt") -> Vocabulary:
        """Parse a UTF-8 text with one word per line.

        Args:
            data: The content of the file.
            source: Name of the file for error messages.
        """
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise FormatError(
                f"{source}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); "
                "a vocabulary is a UTF-8 text file with one word per line"
            ) from None
        # Only "\n" ends a line: splitlines() also cuts at characters that words may contain.
        lines = text.removeprefix("\ufeff").split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        return cls(line.rstrip("\r") for line in lines)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a `vocab.txt`, compressed or not."""
        return cls.parse(read_bytes(path), str(path))

    def dump(self) -> bytes:
        """Return the content of a `vocab.txt`."""
        return "".join(word + "\n" for word in self._words).encode("utf-8")

    def index_of(self, word: str) -> int:
        """Return the index of a word, or that of `<UNK>` if it is not in the vocabulary."""
        index = self._index.get(word)
        if index is None:
            index = self._index.get(UNKNOWN)
        if index is None:
            raise KeyError(f"{word!r} is not in the vocabulary, and neither is {UNKNOWN}")
        return index

    def missing_marks(self) -> list[str]:
        """Return those of `<S>`, `</S>` and `<UNK>` that are missing; a biLM needs all three."""
        return [mark for mark in (BOS, EOS, UNKNOWN) if mark not in self._index]

    @cached_property
    def _index(self) -> dict[str, int]:
        # Of two equal lines the first counts: it has the higher frequency.
        return {word: i for i, word in reversed(list(enumerate(self._words)))}

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[str, ...]: ...

    def __getitem__(self, i: int | slice) -> str | tuple[str, ...]:
        return self._words[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._words == other._words

    def __hash__(self) -> int:
        return hash(self._words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words)"
