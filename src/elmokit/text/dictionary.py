"""The strings that rows of a table belong to: characters or words that a model has numbers for.

Entry i is row i. Unlike a `Vocabulary`, which is what a model can *say*, this is what it can read
as a whole. An entry may be any string, white space and line breaks too, so the file is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from elmokit.errors import FormatError


class Dictionary(Sequence[str]):
    """A list of different strings that also answers `find(entry)`."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Raise `FormatError` for what is no string, or there twice."""
        self._entries = tuple(entries)
        for i, entry in enumerate(self._entries):
            if not isinstance(entry, str):
                raise FormatError(f"entry {i} of a dictionary is {entry!r}; expected a string")
        self._row = {entry: i for i, entry in enumerate(self._entries)}
        if len(self._row) < len(self._entries):
            twice = next(entry for i, entry in enumerate(self._entries) if self._row[entry] != i)
            raise FormatError(f"a dictionary has {twice!r} twice; expected different entries")

    @classmethod
    def parse(cls, data: bytes, source: str) -> Dictionary:
        """Read a JSON list of strings."""
        try:
            entries = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{source} is not JSON: {error}") from None
        if not isinstance(entries, list):
            raise FormatError(f"{source} holds no JSON list")
        try:
            return cls(entries)
        except FormatError as error:
            raise FormatError(f"{source}: {error}") from None

    def dump(self) -> bytes:
        """A JSON list, one entry a line, all ASCII: lone surrogates survive too."""
        return (json.dumps(self._entries, indent=0) + "\n").encode("ascii")

    def find(self, entry: str, otherwise: int = -1) -> int:
        """The row of an entry, or `otherwise`."""
        return self._row.get(entry, otherwise)

    def __contains__(self, entry: object) -> bool:
        return entry in self._row

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[str, ...]: ...

    def __getitem__(self, i: int | slice) -> str | tuple[str, ...]:
        return self._entries[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dictionary) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return f"Dictionary({len(self)} entries)"
