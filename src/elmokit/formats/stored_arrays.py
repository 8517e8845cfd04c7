"""Arrays that stay in their file and are read each time they are asked for.

A model's weights are needed once, when they are packed for the kernel, and rarely after that: to
save the model, for its fingerprint, to train. So they are not kept in memory. They are not mapped
into memory either: reading a mapped file that somebody else has truncated kills the process. A file
that was changed after it was opened is noticed here and reported. One that was replaced by renaming
is still there until it is closed.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from elmokit.bilm.arrays import empty_array
from elmokit.errors import FormatError


class WeightsFile:
    """An open file whose arrays are read on demand, also by several threads or after a fork."""

    def __init__(self, path: Path) -> None:
        """Open the file and remember its size and the time of its last change."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._current_state()
        self.size = self._state[0]
        """Size of the file in bytes."""

    def _current_state(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def read(self, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return an array of the file, which cannot be written to.

        Raises:
            FormatError: The file was changed after it was opened.
        """
        array = empty_array(shape, dtype)
        buffer, done = memoryview(array.reshape(-1).view(np.uint8).data), 0
        while done < len(buffer):
            count = read_at(self._descriptor, buffer[done:], offset + done)
            if count == 0:
                break
            done += count
        if done < len(buffer) or self._current_state() != self._state:
            raise FormatError(
                f"{self.path} was changed after it was opened: it had {self.size:,} bytes "
                f"and has {self._current_state()[0]:,}, or other content. Load it again; to "
                "replace a file that is in use, write another one and rename it"
            )
        array.flags.writeable = False
        return array


def read_at(descriptor: int, buffer: memoryview, offset: int) -> int:
    """Read from a position of an open file, which has a position of its own; return the count."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], offset)
    if hasattr(os, "pread"):  # macOS before 11
        data = os.pread(descriptor, len(buffer), offset)
    else:  # Windows: through a file position of its own
        with open(os.dup(descriptor), "rb", buffering=0) as file:
            file.seek(offset)
            data = file.read(len(buffer)) or b""
    buffer[: len(data)] = data
    return len(data)


@dataclass(frozen=True)
class StoredArray:
    """One array of a file: where it is and what it holds."""

    file: WeightsFile
    """The file."""
    offset: int
    """Position of the first byte."""
    dtype: np.dtype[Any]
    """Type of the numbers."""
    shape: tuple[int, ...]
    """Shape of the array, whose numbers are stored in C order."""

    def read(self) -> npt.NDArray[Any]:
        """Return the array; raise `FormatError` if the file was changed."""
        return self.file.read(self.offset, self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the array, so that NumPy's functions accept it."""
        return self.read() if dtype is None else self.read().astype(dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def take(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return a copy of some rows."""
        taken = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for i, row in enumerate(rows.tolist()):
            taken[i] = self.rows(row, row + 1).read()[0]
        return taken

    def drop_first_axis(self) -> Self:
        """Return the only entry of the first axis."""
        if self.shape[0] != 1:
            raise ValueError(f"the shape is {self.shape}; expected a first axis of size 1")
        return type(self)(self.file, self.offset, self.dtype, self.shape[1:])

    def rows(self, start: int, end: int) -> Self:
        """Return some rows, which are an array in the file as well."""
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        shape = (end - start, *self.shape[1:])
        return type(self)(self.file, self.offset + start * row_bytes, self.dtype, shape)


AnyArray = StoredArray | npt.NDArray[Any]
"""An array in its file or in memory."""


def open_npy(path: Path) -> StoredArray:
    """Return the array of an untrusted .npy file, to be read when it is needed.

    `np.load` takes memory for whatever size a header claims, and reads zip archives and pickles.
    """
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            array = StoredArray(WeightsFile(path), file.tell(), dtype, shape)
        if dtype.hasobject or fortran:
            raise ValueError(f"it holds {dtype}, or is stored by columns")
        if min(shape, default=0) < 0 or math.prod(size or 1 for size in shape) >= 1 << 56:
            raise ValueError(f"it has the shape {shape!s:.100}")
        if array.file.size != array.offset + array.nbytes:
            raise ValueError(f"it has {array.file.size:,} bytes")
    except Exception as error:  # NumPy can raise nearly anything for a damaged header
        raise FormatError(f"{path} is damaged: {error}") from None
    return array


def divide(array: AnyArray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, AnyArray]:
    """Divide an array by rows into named parts.

    Args:
        array: The parts one after another; with another axis of size 1 before, it is dropped.
        shapes: Name and shape of each part, in order.
    """
    if len(array.shape) > len(next(iter(shapes.values()))):
        array = array.drop_first_axis() if isinstance(array, StoredArray) else array[0]
    parts: dict[str, AnyArray] = {}
    start = 0
    for name, shape in shapes.items():
        end = start + shape[0]
        parts[name] = array.rows(start, end) if isinstance(array, StoredArray) else array[start:end]
        start = end
    return parts


class StoredArrays(Mapping[str, npt.NDArray[Any]]):
    """Arrays by name, each read from its file when it is looked up."""

    def __init__(self, entries: Mapping[str, AnyArray]) -> None:
        """Store where the arrays are; some may be in memory already."""
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        entry = self._entries[name]
        return entry.read() if isinstance(entry, StoredArray) else entry

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def select(self, choose: Callable[[str], str | None]) -> StoredArrays:
        """Return some of the arrays, under the names that a function gives; None leaves one out."""
        named = ((choose(name), entry) for name, entry in self._entries.items())
        return StoredArrays({name: entry for name, entry in named if name is not None})
