"""Reading datasets of untrusted HDF5 files: on demand if possible, never from other files.

The HDF5 library walks through the heaps in which it keeps strings without looking where it is: an
entry of zero bytes makes it loop for ever. So it reads through a Python file here, which checks a
heap before the library sees it.
"""

from __future__ import annotations

import io
import math
import os
import re
import struct
import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy.typing as npt

from elmokit.errors import FormatError
from elmokit.formats.stored_arrays import AnyArray, StoredArray, WeightsFile, read_at

_HEAP = b"GCOL\1\0\0\0"
"""How a heap of strings begins. Text has no such bytes, and numbers have them by intent only."""
_BEGIN = re.compile(re.escape(_HEAP))
_HEAP_SIZE = struct.Struct("<Q")
_ENTRY = struct.Struct("<HHIQ")
"""Head of an entry of a heap: its number, 0 for free space, references, nothing, and its size."""


_GZIP, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_FILTERS = (_GZIP, _SHUFFLE, _FLETCHER32)
"""Filters of HDF5 whose result can be checked."""
_STRING_BYTES = 16
"""Bytes of a string in its dataset: its length, and where it is in a heap."""
_MOST_OVERHEAD = 1 << 16
"""Bytes at most by which a packed chunk may be larger than an unpacked one."""


def open_hdf5(raw: BinaryIO, name: str) -> Any:
    """Return an untrusted file as `h5py.File`, which reads through checks.

    Args:
        raw: The file, which has to stay open.
        name: Its name for error messages.
    """
    import h5py

    return h5py.File(_CheckedInput(raw, name), "r")


class _CheckedInput:
    """A file for HDF5 that raises `FormatError` before the library gets a heap that is damaged."""

    def __init__(self, raw: BinaryIO, name: str) -> None:
        self._raw, self._name = raw, name
        self._size = raw.seek(0, os.SEEK_END)
        self._position = 0
        self._checked: set[int] = set()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._position + size)
        buffer = bytearray(max(0, end - self._position))
        return bytes(buffer[: self.readinto(buffer)])

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start = self._position
        if not 0 <= start < self._size:
            return 0  # as the library's own files do, where an address is damaged
        count = self._read_at(view, start)
        self._position += count
        # The library may have the beginning of a heap from an earlier read.
        before = bytearray(min(start, len(_HEAP) - 1))
        self._read_at(memoryview(before), start - len(before))
        self._check_heaps(before + view[: len(_HEAP) - 1], start - len(before))
        self._check_heaps(view[:count], start)
        return count

    def _read_at(self, view: memoryview, offset: int) -> int:
        done = 0
        while done < len(view):
            if isinstance(self._raw, io.FileIO):  # the position may be shared after a fork
                count = read_at(self._raw.fileno(), view[done:], offset + done)
            else:
                self._raw.seek(offset + done)
                count = self._raw.readinto(view[done:])  # type: ignore[attr-defined]
            if not count:
                break
            done += count
        return done

    def _check_heaps(self, block: bytearray | memoryview, start: int) -> None:
        for match in _BEGIN.finditer(block):
            place = start + match.start()
            if place not in self._checked:
                self._check_heap(place)
                self._checked.add(place)

    def _check_heap(self, start: int) -> None:
        """Walk through a heap as the library does; raise `FormatError` if that does not end."""
        head = bytearray(len(_HEAP) + _HEAP_SIZE.size)
        if self._read_at(memoryview(head), start) < len(head):
            return  # the library notices
        size = _HEAP_SIZE.unpack_from(head, len(_HEAP))[0]
        if start + size > self._size:
            return
        heap = bytearray(size)
        self._read_at(memoryview(heap), start)
        place = len(head)
        while place + _ENTRY.size <= size:
            number, _, _, used = _ENTRY.unpack_from(heap, place)
            step = used if number == 0 else _ENTRY.size + (used + 7) // 8 * 8
            if step < _ENTRY.size or place + step > size:
                raise FormatError(
                    f"{self._name} is damaged: an entry of {used:,} bytes in the heap at byte "
                    f"{start:,}"
                )
            place += step


def check_type(stored: Any, file: str, name: str) -> None:
    """Raise `FormatError` if a dataset or an attribute holds neither numbers nor strings.

    The library crashes while it reads a sequence of variable length whose kind is damaged.

    Args:
        stored: Identifier of the dataset or the attribute.
        file: Name of the file for error messages.
        name: Name of the dataset or the attribute.
    """
    from h5py import h5t

    kind = stored.get_type().get_class()
    if kind not in (h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM):
        raise FormatError(
            f"{file} is damaged: {name} holds neither numbers nor strings; make the file again, or "
            "get it again from where it came from"
        )


def read_attribute(target: Any, name: str, file: str) -> Any:
    """Return an attribute of a group or a dataset, None if it has none of that name.

    Args:
        target: The group or dataset.
        name: Name of the attribute.
        file: Name of the file for error messages.
    """
    if name not in target.attrs:
        return None
    check_type(target.attrs.get_id(name), file, name)
    return target.attrs[name]


def check_storage(dataset: Any, file: str, name: str) -> None:
    """Raise `FormatError` if a dataset is in another file, or in pieces that are damaged."""
    if dataset.external is not None or dataset.is_virtual:
        raise FormatError(
            f"{file}: {name} stores its numbers in another file; elmokit reads nothing outside the "
            "model file. Copy the numbers into the file"
        )
    if dataset.chunks is not None:
        _check_chunks(dataset, file, name)


def _check_chunks(dataset: Any, file: str, name: str) -> None:
    """Raise `FormatError` unless every chunk of a dataset unpacks to the size of a chunk.

    The library does not compare the two, and reads behind the end of a chunk that is too short.
    """
    stored = dataset.id
    properties = stored.get_create_plist()
    filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    width = _STRING_BYTES if dataset.dtype.kind == "O" else stored.get_type().get_size()
    expected = math.prod(dataset.chunks) * width
    for chunk in _list_chunks(stored):
        applied = [each for i, each in enumerate(filters) if not chunk.filter_mask >> i & 1]
        if unknown := [each for each in applied if each not in _FILTERS or applied.count(each) > 1]:
            raise FormatError(
                f"{file}: {name} is packed with the HDF5 filter {unknown[0]}, or with one "
                "twice; expected gzip, shuffle, fletcher32 or none. Write the file again without it"
            )
        size = chunk.size
        if applied:
            if size > expected + _MOST_OVERHEAD:
                raise FormatError(f"{file} is damaged: a chunk of {name} has {size:,} bytes")
            data = stored.read_direct_chunk(chunk.chunk_offset)[1]
            size = _unpacked_size(data, applied, expected)
        if size != expected:
            raise FormatError(
                f"{file} is damaged: a chunk of {name} has {size:,} bytes; expected {expected:,}"
            )


def _list_chunks(stored: Any) -> list[Any]:
    """Return where the chunks of a dataset are stored."""
    if not hasattr(stored, "chunk_iter"):  # built with an HDF5 library before 1.12.3
        return [stored.get_chunk_info(number) for number in range(stored.get_num_chunks())]
    chunks: list[Any] = []
    stored.chunk_iter(chunks.append)  # in one pass, where `get_chunk_info` searches anew each time
    return chunks


def _unpacked_size(data: bytes, applied: Sequence[int], expected: int) -> int:
    """Return the size of a chunk after its filters are undone, as far as it is not too large."""
    size = len(data)
    for each in reversed(applied):
        if each == _FLETCHER32:
            size -= 4
        elif each == _GZIP:
            try:
                size = _count_unpacked(data[: max(0, size)], expected)
            except zlib.error:
                return 0
    return size


def _count_unpacked(data: bytes, expected: int) -> int:
    """Return the size of compressed data, or something larger than expected; keep none of it."""
    unpacker, size = zlib.decompressobj(), 0
    while data and size <= expected + _MOST_OVERHEAD:
        size += len(unpacker.decompress(data, 1 << 20))
        data = unpacker.unconsumed_tail
    return size


def check_no_external_links(group: Any, file: str) -> None:
    """Raise `FormatError` if a group, or a group below it, has a link to another file.

    Args:
        group: An open HDF5 file, or a group of it.
        file: Name of the file for error messages.
    """
    import h5py

    seen = set()  # hard links can form a cycle
    groups = [group]
    while groups:
        group = groups.pop()
        if group.id in seen:
            continue
        seen.add(group.id)
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                path = f"{group.name}/{name}".lstrip("/")
                raise FormatError(
                    f"{file}: {path} is an external link to another file ({link.filename}); "
                    "elmokit reads nothing outside the model file. Copy the data into the file"
                )
            if isinstance(link, h5py.HardLink) and group.get(name, getclass=True) is h5py.Group:
                groups.append(group[name])


def read_array(dataset: Any, file: WeightsFile | None) -> AnyArray:
    """Return where a dataset is in its file if it is contiguous there, else its content.

    Args:
        dataset: An open HDF5 dataset.
        file: The file; None to read the numbers into memory.
    """
    start = dataset.id.get_offset()
    end = 0 if start is None else start + dataset.nbytes
    if file is None or not 0 < end <= file.size:
        array: npt.NDArray[Any] = dataset[...]
        return array
    return StoredArray(file, start, dataset.dtype, dataset.shape)
