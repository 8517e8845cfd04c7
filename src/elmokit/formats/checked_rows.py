"""Rows of numbers that stay in their file, each compared with its checksum when it is read.

Large files of vectors are not mapped into memory: reading a mapped file that somebody else has
truncated kills the process, and a flipped bit would go unnoticed. Rows that were damaged, or
changed after the file was opened, raise `FormatError` here.

Shape letters: N rows.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError
from elmokit.formats.stored_arrays import WeightsFile


class CheckedRows:
    """An array in a file whose rows are read on demand, with the interface of a NumPy array."""

    def __init__(
        self,
        path: Path,
        dtype: npt.DTypeLike,
        shape: tuple[int, ...],
        checksums_N: npt.NDArray[np.uint32] | None,
        offset: int = 0,
    ) -> None:
        """Open the file.

        Args:
            path: The file.
            dtype: Type of the numbers.
            shape: Shape of the array, stored in C order.
            checksums_N: Checksum of each row; None for a file of an earlier version.
            offset: Position of the first byte.
        """
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._file, self._offset, self._checksums_N = WeightsFile(path), offset, checksums_N
        self._row_bytes = math.prod(shape[1:]) * self.dtype.itemsize
        if offset + shape[0] * self._row_bytes > self._file.size:
            raise FormatError(f"{path} is truncated: it has {self._file.size:,} bytes")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return one row, those of a slice with step 1, or those with the given numbers."""
        if isinstance(rows, int):
            row = range(len(self))[rows]
            one: npt.NDArray[Any] = self._read(row, row + 1)[0]
            return one
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step != 1:
                raise IndexError("rows can be sliced only with step 1")
            return self._read(start, max(start, stop))
        taken = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for i, row in enumerate(rows.tolist()):
            taken[i] = self._read(row, row + 1)[0]
        return taken

    def _read(self, start: int, stop: int) -> npt.NDArray[Any]:
        shape = (stop - start, *self.shape[1:])
        array = self._file.read(self._offset + start * self._row_bytes, self.dtype, shape)
        if self._checksums_N is not None and not np.array_equal(
            row_checksums(array), self._checksums_N[start:stop]
        ):
            raise FormatError(
                f"{self._file.path} is damaged: a checksum of rows {start:,} to {stop - 1:,} "
                "differs; delete what it belongs to and make it again"
            )
        return array


def row_checksums(array: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Return the CRC-32 of each row of an array."""
    count = len(array)
    if not array.size:
        return np.zeros(count, np.uint32)
    raw = np.ascontiguousarray(array).reshape(count, -1).view(np.uint8)
    return np.fromiter((zlib.crc32(row.data) for row in raw), np.uint32, count)
