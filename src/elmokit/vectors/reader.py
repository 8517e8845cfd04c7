"""Reading a file of vectors as a sequence of arrays, each read when it is accessed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self, SupportsIndex, overload

from elmokit.errors import InputError
from elmokit.vectors.file_formats import VectorReader, format_for, partial_path
from elmokit.vectors.spool import VectorArray


def load_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Open a file of vectors that elmokit wrote, or an HDF5 file of AllenNLP or bilm-tf.

    Args:
        path: A file that ends in `.h5`, `.hdf5`, `.npz` or `.parquet`.
    """
    target = Path(path)
    file_format = format_for(target)
    if not target.is_file():
        unfinished = partial_path(target).exists()
        hint = "; it is unfinished: run the same command again to continue" if unfinished else ""
        raise InputError(f"{target} does not exist or is not a file{hint}")
    reader = file_format.open_file(target)
    return Vectors(reader, range(reader.count))


class Vectors(Sequence[VectorArray]):
    """The vectors of a file: one array per sentence, read when it is accessed.

    A sentence is found by its number or, in a file that has ids, by its id. A slice is a view of
    the same open file; closing either closes both.
    """

    def __init__(self, reader: VectorReader, rows: range) -> None:
        self._reader, self._rows = reader, rows
        self._open = [True]  # shared with the slices
        self._positions: dict[str, int] | None = None

    @property
    def signature(self) -> dict[str, Any] | None:
        """What determined the vectors, as the writer stored it; None if another program wrote."""
        return self._reader.signature

    def words(self, position: SupportsIndex) -> list[str] | None:
        """Return the words of a sentence; None if the file does not hold them."""
        return self._opened().words(self._rows[position])

    @property
    def ids(self) -> list[str] | None:
        """The ids of the sentences, such as those of proteins; None if the file has none."""
        ids = self._opened().ids()
        return None if ids is None else [ids[row] for row in self._rows]

    def position_of(self, id: str) -> int:
        """Return the position of the sentence with this id, or raise `InputError`."""
        if self._positions is None:
            self._positions = {name: i for i, name in enumerate(self.ids or [])}
        if id not in self._positions:
            what = f"no sentence with the id {id!r}" if self._positions else "no ids"
            raise InputError(f"{self._reader.path} has {what}")
        return self._positions[id]

    def items(self) -> Iterator[tuple[list[str] | None, VectorArray]]:
        """Yield the words and the vectors of every sentence in order."""
        for row in self._rows:
            yield self._opened().words(row), self._opened().array(row)

    def close(self) -> None:
        """Close the file."""
        self._open[0] = False
        self._reader.close()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, position: SupportsIndex | str) -> VectorArray: ...
    @overload
    def __getitem__(self, position: slice) -> Vectors: ...
    def __getitem__(self, position: SupportsIndex | str | slice) -> VectorArray | Vectors:
        if isinstance(position, str):
            position = self.position_of(position)
        if isinstance(position, slice):
            view = Vectors(self._reader, self._rows[position])
            view._open = self._open
            return view
        return self._opened().array(self._rows[position])

    def __iter__(self) -> Iterator[VectorArray]:
        for row in self._rows:
            yield self._opened().array(row)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Vectors({str(self._reader.path)!r}, {len(self)} sentences)"

    def _opened(self) -> VectorReader:
        if not self._open[0]:
            raise InputError(f"{self._reader.path} is closed; open it again with load_vectors()")
        return self._reader
