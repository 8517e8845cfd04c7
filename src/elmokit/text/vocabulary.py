"""The words a language model predicts, by falling frequency, as `vocab.txt` lists them.

A biLM reads any word by its characters; the vocabulary is only what it can *say*. Line i is word i:
`<S>`, `</S>`, `<UNK>`, then the rest. Knows nothing about weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.text.characters import BOS, EOS

UNKNOWN = "<UNK>"


class Vocabulary(Sequence[str]):
    """An ordered list of words that also answers `index_of(word)`."""

    def __init__(self, words: Iterable[str]) -> None:
        """Keep the words as they are, so that a file comes out as it went in."""
        self._words = tuple(words)

    @classmethod
    def parse(cls, data: bytes, source: str = "vocab.txt") -> Vocabulary:
        """Read one word a line, UTF-8."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise FormatError(
                f"{source}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); "
                "a vocabulary is a UTF-8 text file with one word a line"
            ) from None
        # Only "\n" ends a line: splitlines() would also cut at characters that words may hold.
        lines = text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        return cls(line.rstrip("\r") for line in lines)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a `vocab.txt`."""
        return cls.parse(path.read_bytes(), str(path))

    def dump(self) -> bytes:
        """The bytes of a `vocab.txt`."""
        return "".join(word + "\n" for word in self._words).encode("utf-8")

    def index_of(self, word: str) -> int:
        """The word's number, or that of `<UNK>`."""
        found = self._index.get(word)
        if found is None:
            found = self._index.get(UNKNOWN)
        if found is None:
            raise KeyError(f"{word!r} is not in the vocabulary, and neither is {UNKNOWN}")
        return found

    def missing_marks(self) -> list[str]:
        """Which of `<S>`, `</S>`, `<UNK>` the list lacks; a language model needs all three."""
        return [mark for mark in (BOS, EOS, UNKNOWN) if mark not in self._index]

    @cached_property
    def _index(self) -> dict[str, int]:
        # The first of two equal lines wins: it is the more frequent one.
        return {word: i for i, word in reversed(list(enumerate(self._words)))}

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
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
