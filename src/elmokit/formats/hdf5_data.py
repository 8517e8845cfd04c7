"""The numbers and strings of an untrusted HDF5 file: their types, and where they are stored.

Numbers are integers and IEEE floats; strings have a fixed size, or are in a heap. They are stored
in one piece, in the header of their object, or in chunks, as the library does unless it is told to
use what is newer than HDF5 1.8 (2008). Chunks may be packed with gzip, shuffle and fletcher32.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.formats.hdf5_input import UNDEFINED, Fields, HDF5Input, walk_tree

STRINGS = np.dtype(object)
"""Type of strings of any size, which are in a heap."""
_REFERENCE = np.dtype([("size", "<u4"), ("heap", "<u8"), ("number", "<u4")])
"""What is stored in the place of such a string."""
_LARGEST_RANK = 32
_BEST_RATIO = 1032
"""Bytes at most that gzip can pack into one."""
_KEPT_STRINGS = 1000
"""Number of strings at most whose places are remembered."""
_GZIP, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_FLOATS = {
    2: (0, 16, 10, 5, 0, 10, 15),
    4: (0, 32, 23, 8, 0, 23, 127),
    8: (0, 64, 52, 11, 0, 52, 1023),
}
"""Offset, precision, place and size of the exponent and of the mantissa, and bias, by size."""


class DataLayout(NamedTuple):
    """Where the numbers of a dataset are: in its header, in one piece, or in chunks."""

    content: bytes | None = None
    """All numbers, if they are in the header."""
    address: int = UNDEFINED
    """Where the numbers begin, or the tree of the chunks."""
    size: int = 0
    """Number of bytes in one piece."""
    chunk: tuple[int, ...] | None = None
    """Shape of a chunk; None if there are no chunks."""


class ChunkFilter(NamedTuple):
    """A filter that chunks went through before they were stored."""

    number: int
    """What it does."""
    width: int | None
    """Its first parameter."""


def read_shape(file: HDF5Input, data: bytes) -> tuple[int, ...] | None:
    """Return the shape in a dataspace message; None if there is nothing at all."""
    fields = Fields(data, file, "a shape")
    version, rank, _ = fields.number(1), fields.number(1), fields.number(1)
    if version == 1:
        fields.take(5)
    elif version == 2:
        if fields.number(1) == 2:
            return None
    else:
        raise file.damage(f"a shape is stored in version {version}; expected 1 or 2")
    if rank > _LARGEST_RANK:
        raise file.damage(f"an array has {rank} axes; at most {_LARGEST_RANK} are possible")
    shape = tuple(fields.number() for _ in range(rank))
    if math.prod(size or 1 for size in shape) >= 1 << 56:  # more than NumPy counts, even if empty
        raise file.damage(f"an array has the shape {shape!s:.100}")
    return shape


def read_type(file: HDF5Input, fields: Fields, *, inner: bool = False) -> np.dtype[Any]:
    """Return the type of the elements: numbers, strings of one size, or `STRINGS`.

    Args:
        file: The file.
        fields: What describes the type.
        inner: Whether it is the type of the numbers of an enumeration.
    """
    first = fields.number(1)
    version, kind = first >> 4, first & 15
    bits, size = fields.number(3), fields.number(4)
    order = ">" if bits & 1 else "<"
    if not 1 <= version <= 5:
        raise file.damage(f"a type is stored in version {version}; expected 1 to 5")
    if kind == 0 and size in (1, 2, 4, 8):
        if (fields.number(2), fields.number(2)) != (0, 8 * size):
            raise file.damage("there are integers that do not fill their bytes")
        return np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}")
    if kind == 1 and size in _FLOATS:
        parts = [fields.number(width) for width in (2, 2, 1, 1, 1, 1, 4)]
        implied, sign, vax = bits >> 4 & 3, bits >> 8 & 255, bits & 0x40
        if tuple(parts) != _FLOATS[size] or implied != 2 or sign != 8 * size - 1 or vax:
            raise file.damage(f"there are floats of {size} bytes that are not those of IEEE 754")
        return np.dtype(f"{order}f{size}")
    if kind == 3 and 0 < size <= file.size:
        return np.dtype(f"S{size}")
    if kind == 8 and not inner:
        return _read_enumeration(file, fields, bits & 0xFFFF, size, version)
    if kind == 9 and bits & 15 == 1 and size == _REFERENCE.itemsize:
        return STRINGS
    raise file.damage(
        f"there is data of the kind {kind} with {size} bytes; expected floats of 2, 4 or 8 bytes, "
        "integers or strings"
    )


def _read_enumeration(
    file: HDF5Input, fields: Fields, count: int, size: int, version: int
) -> np.dtype[Any]:
    """Return the type of the numbers of an enumeration; truth values are one."""
    base = read_type(file, fields, inner=True)
    if base.kind not in "iu" or base.itemsize != size:
        raise file.damage("there is an enumeration of something else than integers")
    names = []
    for _ in range(count):
        end = fields.data.find(b"\0", fields.place)
        names.append(fields.take(end - fields.place))  # refused if there is no end
        fields.take(1 if version >= 3 else 8 - len(names[-1]) % 8)
    values = [fields.take(size) for _ in range(count)]
    if size == 1 and names == [b"FALSE", b"TRUE"] and values == [b"\0", b"\1"]:
        return np.dtype(bool)
    return base


def read_layout(file: HDF5Input, data: bytes) -> DataLayout:
    """Return where the numbers of a dataset are, from its layout message."""
    fields = Fields(data, file, "the place of an array")
    version, kind = fields.number(1), fields.number(1)
    if version not in (3, 4) or kind > 3:
        raise file.damage(f"the place of an array is stored in version {version}; expected 3 or 4")
    if kind == 0:
        return DataLayout(content=fields.take(fields.number(2)))
    if kind == 1:
        return DataLayout(address=fields.number(), size=fields.number())
    if kind == 3:
        raise file.damage(
            "an array is virtual and stores its numbers in another file; elmokit reads nothing "
            "outside the file, so copy the numbers into it"
        )
    if version == 4:
        raise file.damage(
            "an array is stored in chunks in the way of HDF5 1.10; write it without "
            "`libver='latest'`, or without chunks"
        )
    rank, address = fields.number(1), fields.number()
    return DataLayout(address=address, chunk=tuple(fields.number(4) for _ in range(rank)))


def read_filters(file: HDF5Input, data: bytes) -> list[ChunkFilter]:
    """Return the filters of a dataset, in the order in which they were applied."""
    fields = Fields(data, file, "the list of filters")
    version, count = fields.number(1), fields.number(1)
    if version not in (1, 2):
        raise file.damage(f"filters are stored in version {version}; expected 1 or 2")
    fields.take(6 if version == 1 else 0)
    filters: list[ChunkFilter] = []
    for _ in range(count):
        number = fields.number(2)
        length = fields.number(2) if version == 1 or number >= 256 else 0
        fields.take(2)
        parameters = fields.number(2)
        fields.take(length + (-length % 8 if version == 1 else 0))
        values = [fields.number(4) for _ in range(parameters)]
        fields.take(4 if version == 1 and parameters % 2 else 0)
        if number not in (_GZIP, _SHUFFLE, _FLETCHER32) or number in [f.number for f in filters]:
            raise file.damage(
                f"chunks are packed with the filter {number}, or with one twice; expected gzip, "
                "shuffle, fletcher32 or none. Write the file again without it"
            )
        filters.append(ChunkFilter(number, values[0] if values else None))
    return filters


class StoredNumbers:
    """The elements of a dataset, wherever they are stored."""

    def __init__(
        self,
        file: HDF5Input,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        layout: DataLayout,
        filters: Sequence[ChunkFilter],
        heaps: StringHeaps,
        name: str,
    ) -> None:
        self._file, self._heaps, self._name = file, heaps, name
        self._shape, self._layout, self._filters = shape, layout, filters
        self._is_text = dtype == STRINGS
        self._dtype = _REFERENCE if self._is_text else dtype
        self._bytes = math.prod(shape) * self._dtype.itemsize
        self._unpacked: npt.NDArray[Any] | None = None
        if layout.content is not None and len(layout.content) != self._bytes:
            raise self._wrong_size(len(layout.content))
        if self.place is not None and layout.size != self._bytes:
            raise self._wrong_size(layout.size)

    def _wrong_size(self, size: int) -> Exception:
        return self._file.damage(
            f"{self._name} of shape {self._shape!s:.100} has {size:,} bytes; expected "
            f"{self._bytes:,}"
        )

    @property
    def place(self) -> int | None:
        """Address of the first byte; None unless they are in one piece, and there are any."""
        one_piece = self._layout.content is None and self._layout.chunk is None and self._bytes
        return self._layout.address if one_piece else None

    def read(self, rows: slice | None = None) -> npt.NDArray[Any]:
        """Return all elements, or some rows of them."""
        if rows is None:
            rows = slice(0, self._shape[0] if self._shape else 1)
        array = self._read_rows(rows) if self._shape else self._read_rows(rows).reshape(())
        if not self._is_text:
            return array
        texts = np.empty(array.shape, object)
        texts.ravel()[:] = self._heaps.read(array.ravel().tolist())
        return texts

    def _read_rows(self, rows: slice) -> npt.NDArray[Any]:
        shape = self._shape or (1,)
        start, end, _ = rows.indices(shape[0])
        wanted = (max(0, end - start), *shape[1:])
        if not math.prod(wanted):
            return np.empty(wanted, self._dtype)
        row = math.prod(shape[1:]) * self._dtype.itemsize
        if self._layout.chunk is not None:
            if self._unpacked is None:
                self._unpacked = self._unpack_chunks()
            return self._unpacked[start:end].copy()
        if self._layout.content is not None:
            data = bytearray(self._layout.content[start * row : end * row])
        elif self._layout.address == UNDEFINED:
            raise self._file.damage(f"the numbers of {self._name} were never written")
        else:
            data = self._file.read_buffer(self._layout.address + start * row, (end - start) * row)
        return np.frombuffer(data, self._dtype).reshape(wanted)

    def _unpack_chunks(self) -> npt.NDArray[Any]:
        """Return the array that is stored in chunks."""
        file, item = self._file, self._dtype.itemsize
        chunk = self._layout.chunk or ()
        if len(chunk) != len(self._shape) + 1 or chunk[-1] != item or 0 in chunk:
            raise file.damage(f"the chunks of {self._name} have the shape {chunk!s:.100}")
        chunk = chunk[:-1]
        size = math.prod(chunk) * item
        expected = math.prod(-(-n // m) for n, m in zip(self._shape, chunk, strict=True))
        found = {each.offset: each for each in _list_chunks(file, self._layout.address, len(chunk))}
        if len(found) != expected:
            raise file.damage(
                f"{self._name} has {len(found):,} chunks, but is {expected:,} chunks large; not "
                "all of its numbers were written"
            )
        if sum(each.size for each in found.values()) > file.size:
            raise file.damage(f"the chunks of {self._name} overlap")
        for each in found.values():
            packed = any(f.number == _GZIP for f in self._applied(each.mask))
            if size > each.size * (_BEST_RATIO if packed else 1) or each.size > 2 * size + 1024:
                raise file.damage(
                    f"a chunk of {self._name} has {each.size:,} bytes; expected {size:,} "
                    "when it is unpacked"
                )
        array = np.empty(self._shape, self._dtype)
        for each in found.values():
            if any(
                o % m or o >= n for o, m, n in zip(each.offset, chunk, self._shape, strict=True)
            ):
                raise file.damage(f"a chunk is at {each.offset!s:.100}, where there is none")
            data = file.read(each.address, each.size)
            for one in reversed(self._applied(each.mask)):
                data = _undo_filter(file, one, data, size, item)
            if len(data) != size:
                raise file.damage(
                    f"a chunk of {self._name} has {len(data):,} bytes; expected {size:,}"
                )
            place = tuple(slice(o, o + m) for o, m in zip(each.offset, chunk, strict=True))
            part = array[place]
            whole = np.frombuffer(data, self._dtype).reshape(chunk)
            part[...] = whole[tuple(slice(0, n) for n in part.shape)]
        return array

    def _applied(self, mask: int) -> list[ChunkFilter]:
        return [each for i, each in enumerate(self._filters) if not mask >> i & 1]


class _Chunk(NamedTuple):
    offset: tuple[int, ...]
    size: int
    mask: int
    address: int


def _list_chunks(file: HDF5Input, address: int, rank: int) -> Iterator[_Chunk]:
    for key, child in walk_tree(file, address, 1, 8 + 8 * (rank + 1)):
        size, mask, *offset = struct.unpack(f"<II{rank + 1}Q", key)
        yield _Chunk(tuple(offset[:-1]), size, mask, child)


def _undo_filter(file: HDF5Input, applied: ChunkFilter, data: bytes, size: int, item: int) -> bytes:
    """Return what a filter was given; at most a few bytes more than a chunk."""
    if applied.number == _GZIP:
        unpacker = zlib.decompressobj()
        try:
            unpacked = unpacker.decompress(data, size + 8)
        except zlib.error as error:
            raise file.damage(f"a chunk cannot be unpacked ({error})") from None
        if not unpacker.eof:
            raise file.damage("a chunk is incomplete, or larger than it should be")
        return unpacked
    if applied.number == _FLETCHER32:
        if len(data) < 4 or _fletcher32(data[:-4]) != tuple(
            part % 0xFFFF for part in struct.unpack("<HH", data[-4:])
        ):
            raise file.damage("the checksum of a chunk differs")
        return data[:-4]
    if applied.width != item:
        raise file.damage(f"a chunk is shuffled by {applied.width} bytes; expected {item}")
    count = len(data) // item
    sorted_bytes = np.frombuffer(data[: count * item], np.uint8).reshape(item, count)
    return sorted_bytes.T.tobytes() + data[count * item :]


def _fletcher32(data: bytes) -> tuple[int, int]:
    """Return both sums of the checksum; 0 and 65535 are the same."""
    words = np.frombuffer(data + bytes(len(data) % 2), ">u2").astype(np.uint64)
    one = two = 0
    for start in range(0, len(words), 1 << 16):
        block = words[start : start + (1 << 16)]
        count = len(block)
        two += count * one + int((block * np.arange(count, 0, -1, dtype=np.uint64)).sum())
        one += int(block.sum())
    return one % 0xFFFF, two % 0xFFFF


class StringHeaps:
    """The heaps of a file, in which strings are that have no fixed size."""

    def __init__(self, file: HDF5Input) -> None:
        self._file = file
        self._sizes: dict[int, int] = {}  # of all heaps so far, by address
        self._heaps: dict[int, dict[int, tuple[int, int]]] = {}  # those of the last reads
        self._total = self._kept = 0

    def read(self, references: list[tuple[int, int, int]]) -> list[bytes]:
        """Return strings, given what is stored in their places."""
        if sum(size for size, _, _ in references) > self._file.size:
            raise self._file.damage("its strings are larger than the file")
        return [self._read_one(*reference) for reference in references]

    def _read_one(self, size: int, address: int, number: int) -> bytes:
        if size == 0:
            return b""
        if address not in self._heaps:
            if self._kept > _KEPT_STRINGS:
                self._heaps.clear()
                self._kept = 0
            self._heaps[address] = self._read_heap(address)
            self._kept += len(self._heaps[address])
        start, stored = self._heaps[address].get(number, (0, 0))
        if stored < size:
            raise self._file.damage(f"a string has {stored:,} bytes; expected {size:,}")
        return self._file.read(start, size)

    def _read_heap(self, address: int) -> dict[int, tuple[int, int]]:
        """Return where the strings of a heap are, and their sizes, by number."""
        what = "a heap of strings"
        head = Fields(self._file.read(address, 16), self._file, what)
        head.expect(b"GCOL\x01\0\0\0")
        size = head.number()
        if address not in self._sizes:
            self._sizes[address] = size
            self._total += size
            if self._total > self._file.size:
                raise self._file.damage("its heaps of strings overlap")
        fields = Fields(self._file.read(address, size), self._file, what)
        fields.take(16)
        strings: dict[int, tuple[int, int]] = {}
        while fields.left >= 16:
            number, _, stored = fields.number(2), fields.take(6), fields.number()
            if number == 0:  # free space, to the end of the heap
                break
            if number in strings:
                raise self._file.damage("a heap has two strings of one number")
            strings[number] = (address + fields.place, stored)
            fields.take((stored + 7) // 8 * 8)
        return strings
