"""The tensors of a TensorFlow checkpoint by name: `X.index` beside `X.data-00000-of-0000M`.

The index (see `tf_index.py`) holds a small protocol buffer for each tensor: type, shape, data
file, place, checksum; and, where a variable was cut into slices, where these belong. Everything is
checked against the sizes of the files before anything is read. Tensors in one piece are views of
the mapped file. Knows nothing about what the tensors mean.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import release
from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats.crc32c import crc32c, masked
from elmokit.formats.source import Source
from elmokit.formats.tf_index import LARGEST_FILE, read_table, varint

FLOATS = {1: "<f4", 2: "<f8", 19: "<f2"}
"""TensorFlow's numbers for the types that a network's weights may have."""
HEADER = b""
"""The key of the entry about the whole; all others are names, or encoded slices (first byte 0)."""
FORMAT_VERSION = 1
MOST_SLICES = 1024

Extents = tuple[tuple[int, int], ...]
"""For each dimension, where a slice starts and how long it is; …"""
FULL = -1
"""… or this, where it has all of a dimension."""


@dataclass(frozen=True)
class Entry:
    """What the index says about a tensor."""

    dtype: int = 0
    shape: tuple[int, ...] = ()
    shard: int = 0
    offset: int = 0
    size: int = 0
    checksum: int = 0
    slices: tuple[Extents, ...] = field(default=())


class Bundle:
    """An open checkpoint; `prefix` is its name without `.index`."""

    def __init__(self, source: Source, prefix: str) -> None:
        """Read the index and see that all data files are there and long enough."""
        self._source = source
        self._prefix = prefix
        self.where = source.describe(prefix + ".index")
        if source.size(prefix + ".index") > LARGEST_FILE:
            raise FormatError(f"{self.where} is larger than any index of a checkpoint")
        table = read_table(source.read(prefix + ".index"), self.where)
        self._shards = self._read_header(table.pop(HEADER, None))
        self._entries = {key: _entry(value, self.where) for key, value in table.items()}
        self._opened: dict[int, npt.NDArray[np.uint8]] = {}
        self._sizes = self._check_files()

    @property
    def names(self) -> list[str]:
        """The tensors, sorted."""
        return [key.decode("utf-8", "replace") for key in self._entries if key[0]]

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._entries

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, without reading it."""
        return self._entries[name.encode()].shape

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """A tensor of floats, its checksum verified: a view of the file if it is in one piece."""
        entry = self._entries[name.encode()]
        return self._assemble(name, entry) if entry.slices else self._read(name, entry)

    # -- what the index says -------------------------------------------------------------------

    def _read_header(self, value: bytes | None) -> int:
        """The number of data files."""
        if value is None:
            raise FormatError(f"{self.where} has no header; it is no index of a checkpoint")
        header = dict(_fields(value, self.where))
        version = header.get(3, b"")
        versions = dict(_fields(version, self.where)) if isinstance(version, bytes) else {}
        least = versions.get(2, 0)
        if not isinstance(least, int) or least > FORMAT_VERSION:
            raise FormatError(
                f"{self.where} asks for readers of version {least!r}; this one knows "
                f"{FORMAT_VERSION}. Save it with an older TensorFlow"
            )
        if header.get(2, 0) != 0:
            raise FormatError(
                f"{self.where} was written on a big-endian machine; "
                "load and save the checkpoint with TensorFlow on a common one"
            )
        shards = header.get(1, 0)
        if not isinstance(shards, int) or not 0 < shards < 100_000:
            raise FormatError(f"{self.where} speaks of {shards!r} data files; expected 1 or more")
        return shards

    def _shard_name(self, shard: int) -> str:
        return f"{self._prefix}.data-{shard:05d}-of-{self._shards:05d}"

    def _check_files(self) -> dict[int, int]:
        """The size of each data file; an error if one is missing or ends too early."""
        needed = dict.fromkeys(range(self._shards), 0)
        for key, entry in self._entries.items():
            if entry.slices:
                continue
            if entry.shard not in needed or entry.offset < 0 or entry.size < 0:
                raise FormatError(
                    f"{self.where} is damaged: it says that {_printable(key)} lies in data file "
                    f"{entry.shard} of {self._shards} at {entry.offset}, {entry.size} bytes long"
                )
            needed[entry.shard] = max(needed[entry.shard], entry.offset + entry.size)
        names = {shard: self._shard_name(shard) for shard in needed}
        missing = [name for name in names.values() if name not in self._source.names]
        if missing:
            raise ModelNotFound(
                f"{self._source.path} has no {', '.join(missing[:3])}, which {self._prefix}.index "
                "speaks of; a checkpoint needs all of its data files"
            )
        sizes = {shard: self._source.size(name) for shard, name in names.items()}
        for shard, size in sizes.items():
            if size < needed[shard]:
                raise FormatError(
                    f"{self._source.describe(names[shard])} has {size:,} bytes; its index asks for "
                    f"{needed[shard]:,}. It is truncated or not of this model: copy it again"
                )
        return sizes

    # -- the data ------------------------------------------------------------------------------

    def _dtype(self, name: str, entry: Entry) -> npt.DTypeLike:
        if entry.dtype not in FLOATS:
            raise FormatError(
                f"{self.where}: {name} has TensorFlow's type {entry.dtype}; "
                "expected floats of 16, 32 or 64 bits (19, 1 or 2)"
            )
        return FLOATS[entry.dtype]

    def _read(self, name: str, entry: Entry) -> npt.NDArray[Any]:
        dtype = np.dtype(self._dtype(name, entry))
        expected = math.prod(entry.shape) * dtype.itemsize
        if entry.size != expected:
            raise FormatError(
                f"{self.where} is damaged: {name} has {entry.size} bytes; "
                f"its shape {entry.shape} asks for {expected}"
            )
        raw = self._data(entry.shard)[entry.offset : entry.offset + entry.size]
        if masked(crc32c(raw)) != entry.checksum:
            raise FormatError(
                f"{self._source.describe(self._shard_name(entry.shard))}: {name} does not have the "
                "checksum of the index: the file is damaged. Copy it again"
            )
        release(raw)  # reading it all for the checksum need not keep it all in memory
        if entry.offset % dtype.itemsize:
            raw = raw.copy()  # not every place of a file can be read as numbers
        array: npt.NDArray[Any] = raw.view(dtype).reshape(entry.shape).view(np.ndarray)
        return array

    def _data(self, shard: int) -> npt.NDArray[np.uint8]:
        if shard not in self._opened:
            name = self._shard_name(shard)
            if self._source.file_path is None or self._sizes[shard] == 0:
                self._opened[shard] = np.frombuffer(self._source.read(name), np.uint8)
            else:
                self._opened[shard] = np.memmap(self._source.file_path / name, np.uint8, "r")
        return self._opened[shard]

    def _assemble(self, name: str, entry: Entry) -> npt.NDArray[Any]:
        """A tensor from its slices, which must fill it without overlapping."""
        dtype = self._dtype(name, entry)
        fits = len(entry.slices) <= MOST_SLICES and all(
            0 < len(extents) == len(entry.shape) < 256 for extents in entry.slices
        )
        places = [_resolved(e, entry.shape) for e in entry.slices] if fits else []
        parts = [self._entries.get(slice_key(name, e), Entry()) for e in entry.slices if fits]
        if (
            not fits
            or not all(
                start + length <= whole
                for place in places
                for (start, length), whole in zip(place, entry.shape, strict=True)
            )
            or sum(math.prod(n for _, n in p) for p in places) != math.prod(entry.shape)
            or _overlap(places)
            or any(
                part.slices or part.dtype != entry.dtype or part.shape != tuple(n for _, n in place)
                for part, place in zip(parts, places, strict=True)
            )
            # Slices that are larger than the files share bytes, which no writer does.
            or sum(part.size for part in parts) > sum(self._sizes.values())
        ):
            raise FormatError(f"{self.where} is damaged: the slices of {name} do not make a whole")
        numbers = [self._read(f"a slice of {name}", part) for part in parts]
        whole = np.empty(entry.shape, dtype)
        for part, place in zip(numbers, places, strict=True):
            whole[tuple(slice(start, start + length) for start, length in place)] = part
        return whole


def slice_key(name: str, extents: Extents) -> bytes:
    """Under which key the index keeps a slice: its name, number of dimensions and extents."""
    key = b"\x00" + name.encode() + b"\x00\x01" + bytes([1, len(extents)])
    return key + b"".join(_ordered(n) for extent in extents for n in extent)


def _ordered(value: int) -> bytes:
    """A number so that sorted bytes are sorted numbers: n bytes begin with n one-bits."""
    if value == FULL:
        return b"\x7f"
    length = value.bit_length() // 7 + 1  # six bits fit into one byte, 13 into two, …
    ones = (1 << length) - 1
    return (ones << 7 * length | value).to_bytes(length, "big")


def _resolved(extents: Extents, shape: tuple[int, ...]) -> Extents:
    return tuple(
        (start, whole if length == FULL else length)
        for (start, length), whole in zip(extents, shape, strict=True)
    )


def _overlap(slices: Sequence[Extents]) -> bool:
    arrays = np.array(slices).reshape(len(slices), -1, 2)
    starts, ends = arrays[:, :, 0], arrays.sum(axis=2)
    common = (starts[:, None] < ends[None]) & (starts[None] < ends[:, None])
    together = common.all(axis=2)
    return bool(together.sum() > len(slices))


# -- protocol buffers --------------------------------------------------------------------------


def _fields(data: bytes, where: str) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number and value, not interpreted."""
    place = 0
    while place < len(data):
        tag, place = varint(data, place, where)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, place = varint(data, place, where)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                size, place = varint(data, place, where)
            if size is None or place + size > len(data):
                raise FormatError(f"{where} is damaged: an entry of it cannot be understood")
            value = data[place : place + size]
            place += size
        yield tag >> 3, value


def _entry(data: bytes, where: str) -> Entry:
    """A BundleEntryProto."""
    plain = {1: "dtype", 3: "shard", 4: "offset", 5: "size"}
    values: dict[str, int] = {}
    shape: tuple[int, ...] = ()
    slices: list[Extents] = []
    for number, value in _fields(data, where):
        if number in plain and isinstance(value, int):
            values[plain[number]] = _signed(value)
        elif number == 2 and isinstance(value, bytes):
            dims = [dict(_fields(dim, where)) for dim in _messages(value, 2, where)]
            shape = tuple(_number(dim.get(1, 0), where) for dim in dims)
        elif number == 6 and isinstance(value, bytes) and len(value) == 4:
            values["checksum"] = struct.unpack("<I", value)[0]
        elif number == 7 and isinstance(value, bytes):
            extents = [dict(_fields(extent, where)) for extent in _messages(value, 1, where)]
            slices.append(
                tuple(
                    (_number(e.get(1, 0), where), _number(e[2], where) if 2 in e else FULL)
                    for e in extents
                )
            )
    return Entry(**values, shape=shape, slices=tuple(slices))


def _messages(data: bytes, number: int, where: str) -> list[bytes]:
    found = [value for n, value in _fields(data, where) if n == number]
    if not all(isinstance(value, bytes) for value in found):
        raise FormatError(f"{where} is damaged: an entry of it cannot be understood")
    return found  # type: ignore[return-value]


def _number(value: int | bytes, where: str) -> int:
    if isinstance(value, bytes) or not 0 <= _signed(value) < 1 << 48:
        raise FormatError(f"{where} is damaged: a tensor in it has the size {value!r}")
    return value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _printable(key: bytes) -> str:
    return repr(key.decode("utf-8", "replace"))
