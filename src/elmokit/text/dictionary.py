"""The strings that have a row in an embedding table: the characters or words a model knows.

Entry i belongs to row i. Unlike a `Vocabulary`, which lists the words that a model can *predict*,
this lists what it can read as one unit. An entry may be any string, including white space and line
breaks, so the file is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from elmokit.errors import FormatError
from elmokit.json_text import parse_json


class Dictionary(Sequence[str]):
    """A sequence of distinct strings with a fast `index_of(entry)`."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Store the entries; raise `FormatError` if one is not a string or occurs twice."""
        self._entries = tuple(entries)
        for i, entry in enumerate(self._entries):
            if not isinstance(entry, str):
                raise FormatError(f"entry {i} of a dictionary is {entry!r:.100}; expected a string")
        self._row = {entry: i for i, entry in enumerate(self._entries)}
        if len(self._row) < len(self._entries):
            duplicate = next(
                entry for i, entry in enumerate(self._entries) if self._row[entry] != i
            )
            raise FormatError(
                f"a dictionary has {duplicate!r:.100} twice; expected distinct entries"
            )

    @classmethod
    def parse(cls, data: bytes, source: str) -> Dictionary:
        """Parse a JSON list of strings.

        Args:
            data: The content of the file.
            source: Name of the file for error messages.
        """
        try:
            entries = parse_json(data)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{source} is not valid JSON: {error}") from None
        if not isinstance(entries, list):
            raise FormatError(
                f"{source} holds a {type(entries).__name__}; expected a JSON list of strings"
            )
        try:
            return cls(entries)
        except FormatError as error:
            raise FormatError(f"{source}: {error}") from None

    def dump(self) -> bytes:
        """Return the entries as a JSON list in ASCII, one per line; lone surrogates survive."""
        return (json.dumps(self._entries, indent=0) + "\n").encode("ascii")

    def index_of(self, entry: str, default: int = -1) -> int:
        """Return the row of an entry, or `default` if there is no such entry."""
        return self._row.get(entry, default)

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
