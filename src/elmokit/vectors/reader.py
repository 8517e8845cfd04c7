"""Reading vectors: a file as a sequence of arrays, each read when it is asked for."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, SupportsIndex, overload

from elmokit.errors import InputError
from elmokit.vectors.spool import Array
from elmokit.vectors.suffix import format_of, partial


def load(path: str | os.PathLike[str]) -> "Vectors":
    """Open a file of vectors: one of ours, or AllenNLP's and bilm-tf's HDF5."""
    target = Path(path)
    format_ = format_of(target)
    if not target.is_file():
        hint = "; its writing was interrupted: run it again" if partial(target).exists() else ""
        raise InputError(f"{target} is not a file{hint}")
    reader: _Reader = format_.Reader(target)
    return Vectors(reader, range(reader.count))


class _Reader(Protocol):
    """What each format's file offers when open."""

    path: Path
    count: int
    signature: dict[str, Any] | None

    def __init__(self, path: Path) -> None: ...
    def array(self, position: int) -> Array: ...
    def words(self, position: int) -> list[str] | None: ...
    def close(self) -> None: ...


class Vectors(Sequence[Array]):
    """The arrays of a file in the order of the sentences, each read when asked for.

    A slice is a view of the same open file; `close` on any of them closes it.
    """

    def __init__(self, reader: _Reader, rows: range) -> None:
        self._reader, self._rows = reader, rows
        self._open = [True]  # shared with the slices

    @property
    def signature(self) -> dict[str, Any] | None:
        """What the writer was told; None for a file that is not ours."""
        return self._reader.signature

    def words(self, position: SupportsIndex) -> list[str] | None:
        """The words of a sentence; None where a foreign file does not tell them."""
        return self._opened().words(self._rows[position])

    def items(self) -> Iterator[tuple[list[str] | None, Array]]:
        """(words, array) of every sentence in order."""
        for row in self._rows:
            yield self._opened().words(row), self._opened().array(row)

    def close(self) -> None:
        """Close the file."""
        self._open[0] = False
        self._reader.close()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, position: SupportsIndex) -> Array: ...
    @overload
    def __getitem__(self, position: slice) -> "Vectors": ...
    def __getitem__(self, position: SupportsIndex | slice) -> "Array | Vectors":
        if isinstance(position, slice):
            view = Vectors(self._reader, self._rows[position])
            view._open = self._open
            return view
        return self._opened().array(self._rows[position])

    def __iter__(self) -> Iterator[Array]:
        for row in self._rows:
            yield self._opened().array(row)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Vectors({str(self._reader.path)!r}, {len(self)} sentences)"

    def _opened(self) -> _Reader:
        if not self._open[0]:
            raise InputError(f"{self._reader.path} is closed: open it again with load()")
        return self._reader
