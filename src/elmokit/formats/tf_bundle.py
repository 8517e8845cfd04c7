"""The tensors of a TensorFlow checkpoint by name: `X.index` with `X.data-00000-of-0000M`.

The index (see `tf_index.py`) holds a small protocol buffer per tensor: its type, shape, data file,
position and checksum and, if a variable is divided into slices, their positions in it. Everything
is checked against the sizes of the files before anything is read. Undivided tensors stay in their
file until they are used. Knows nothing about what the tensors mean.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats.crc32c import crc32c, mask_checksum
from elmokit.formats.source import ModelSource
from elmokit.formats.stored_arrays import AnyArray, StoredArray, WeightsFile
from elmokit.formats.tf_index import LARGEST_FILE, read_table, varint

FLOATS = {1: "<f4", 2: "<f8", 19: "<f2"}
"""The types that weights may have, by TensorFlow's numbers for them."""
HEADER = b""
"""Key of the entry about the checkpoint; other keys are names, or slices (first byte 0)."""
FORMAT_VERSION = 1
MOST_SLICES = 1024
"""Number of slices of a tensor at most."""
MOST_DIMENSIONS = 16
"""Number of dimensions of a tensor at most."""

Extents = tuple[tuple[int, int], ...]
"""The start and the length of a slice in each dimension."""
FULL = -1
"""The length of a slice that has all of a dimension."""


@dataclass(frozen=True)
class TensorEntry:
    """The entry of a tensor in the index."""

    dtype: int = 0
    """TensorFlow's number of the type."""
    shape: tuple[int, ...] = ()
    """Shape of the tensor."""
    shard: int = 0
    """Number of the data file."""
    offset: int = 0
    """Position in the data file in bytes."""
    size: int = 0
    """Size in bytes."""
    checksum: int = 0
    """Masked CRC-32C of the bytes."""
    slices: tuple[Extents, ...] = field(default=())
    """The slices of a tensor that is divided; they have entries of their own."""


class TensorBundle:
    """An open TensorFlow checkpoint, whose tensors can be read by name."""

    def __init__(self, source: ModelSource, prefix: str) -> None:
        """Read the index, and check that all data files exist and are long enough.

        Args:
            source: The directory or archive of the files.
            prefix: Name of the checkpoint, without `.index`.
        """
        self._source = source
        self._prefix = prefix
        self.where = source.describe(prefix + ".index")
        if source.size(prefix + ".index") > LARGEST_FILE:
            raise FormatError(f"{self.where} is too large for the index of a checkpoint")
        table = read_table(source.read(prefix + ".index"), self.where)
        self._shards = self._read_header(table.pop(HEADER, None))
        self._entries = {key: _entry(value, self.where) for key, value in table.items()}
        self._opened: dict[int, WeightsFile | npt.NDArray[np.uint8]] = {}
        self._check_files()

    @property
    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        return [key.decode("utf-8", "replace") for key in self._entries if key[0]]

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._entries

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, without reading it."""
        return self._find(name).shape

    def tensor(self, name: str) -> AnyArray:
        """Return a tensor of floats, after verifying its checksum."""
        entry = self._find(name)
        return self._assemble(name, entry) if entry.slices else self._read(name, entry)

    def _find(self, name: str) -> TensorEntry:
        entry = self._entries.get(name.encode())
        if entry is None:
            raise FormatError(f"{self.where} has no tensor {name[:200]}, which a biLM has")
        return entry

    # -- the index -----------------------------------------------------------------------------

    def _read_header(self, value: bytes | None) -> int:
        """Return the number of data files."""
        if value is None:
            raise FormatError(f"{self.where} has no header, so it is not the index of a checkpoint")
        header = dict(_fields(value, self.where))
        version = header.get(3, b"")
        versions = dict(_fields(version, self.where)) if isinstance(version, bytes) else {}
        required = versions.get(2, 0)
        if not isinstance(required, int) or required > FORMAT_VERSION:
            raise FormatError(
                f"{self.where} has version {required!r:.60} of the checkpoint format; elmokit "
                f"reads version {FORMAT_VERSION}. Save it with an older TensorFlow"
            )
        if header.get(2, 0) != 0:
            raise FormatError(
                f"{self.where} was written on a big-endian machine; load and save the checkpoint "
                "with TensorFlow on a little-endian one"
            )
        shards = header.get(1, 0)
        if not isinstance(shards, int) or not 0 < shards < 100_000:
            raise FormatError(f"{self.where} lists {shards!r:.60} data files; expected 1 or more")
        return shards

    def _shard_name(self, shard: int) -> str:
        return f"{self._prefix}.data-{shard:05d}-of-{self._shards:05d}"

    def _check_files(self) -> None:
        """Raise an error if a data file is missing or too short."""
        needed = dict.fromkeys(range(self._shards), 0)
        used = dict.fromkeys(needed, 0)
        for key, entry in self._entries.items():
            if entry.slices:
                continue
            if entry.shard not in needed or entry.offset < 0 or entry.size < 0:
                raise FormatError(
                    f"{self.where} is damaged: it places {_printable(key)} in data file "
                    f"{entry.shard} of {self._shards}, at {entry.offset}, with {entry.size} bytes"
                )
            needed[entry.shard] = max(needed[entry.shard], entry.offset + entry.size)
            used[entry.shard] += entry.size
        names = {shard: self._shard_name(shard) for shard in needed}
        missing = sorted(set(names.values()) - set(self._source.names))
        if missing:
            raise ModelNotFound(
                f"{self._source.path} has no {', '.join(missing[:3])}, which {self._prefix}.index "
                "refers to; a checkpoint needs all of its data files"
            )
        sizes = {shard: self._source.size(name) for shard, name in names.items()}
        for shard, size in sizes.items():
            if size < needed[shard]:
                raise FormatError(
                    f"{self._source.describe(names[shard])} has {size:,} bytes; its index requires "
                    f"{needed[shard]:,}. It is truncated or of another model: copy it again"
                )
            if size < used[shard]:  # a small file would be a large model
                raise FormatError(
                    f"{self._source.describe(names[shard])} has {size:,} bytes, and its tensors "
                    f"have {used[shard]:,}: they share bytes, which TensorFlow never writes"
                )

    # -- the data ------------------------------------------------------------------------------

    def _dtype(self, name: str, entry: TensorEntry) -> npt.DTypeLike:
        if entry.dtype not in FLOATS:
            raise FormatError(
                f"{self.where}: {name} has the TensorFlow type {entry.dtype}; "
                "expected floats of 16, 32 or 64 bits (19, 1 or 2)"
            )
        return FLOATS[entry.dtype]

    def _read(self, name: str, entry: TensorEntry) -> AnyArray:
        dtype = np.dtype(self._dtype(name, entry))
        expected = math.prod(entry.shape) * dtype.itemsize
        if entry.size != expected:
            raise FormatError(
                f"{self.where} is damaged: {name} has {entry.size} bytes; its shape {entry.shape} "
                f"requires {expected}"
            )
        data = self._data(entry.shard)
        if isinstance(data, WeightsFile):
            raw = data.read(entry.offset, np.dtype(np.uint8), (entry.size,))
        else:
            raw = data[entry.offset : entry.offset + entry.size]
        if mask_checksum(crc32c(raw)) != entry.checksum:
            raise FormatError(
                f"{self._source.describe(self._shard_name(entry.shard))} is damaged: the checksum "
                f"of {name} is wrong. Copy it again"
            )
        if isinstance(data, WeightsFile):
            return StoredArray(data, entry.offset, dtype, entry.shape)
        if entry.offset % dtype.itemsize:
            raw = raw.copy()  # numbers must be aligned
        array: npt.NDArray[Any] = raw.view(dtype).reshape(entry.shape).view(np.ndarray)
        return array

    def _data(self, shard: int) -> WeightsFile | npt.NDArray[np.uint8]:
        if shard not in self._opened:
            name = self._shard_name(shard)
            path = self._source.locate(name)
            self._opened[shard] = (
                np.frombuffer(self._source.read(name), np.uint8)
                if path is None
                else WeightsFile(path)
            )
        return self._opened[shard]

    def _assemble(self, name: str, entry: TensorEntry) -> npt.NDArray[Any]:
        """Return a tensor made of its slices, which must fill it without overlapping."""
        dtype = self._dtype(name, entry)
        fits = len(entry.slices) <= MOST_SLICES and all(
            0 < len(extents) == len(entry.shape) for extents in entry.slices
        )
        places = [_resolved(e, entry.shape) for e in entry.slices] if fits else []
        parts = [self._entries.get(slice_key(name, e), TensorEntry()) for e in entry.slices if fits]
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
        ):
            raise FormatError(f"{self.where} is damaged: the slices of {name} do not fit together")
        numbers = [self._read(f"a slice of {name}", part) for part in parts]
        whole = np.empty(entry.shape, dtype)
        for part, place in zip(numbers, places, strict=True):
            values = part.read() if isinstance(part, StoredArray) else part
            whole[tuple(slice(start, start + length) for start, length in place)] = values
        return whole


def slice_key(name: str, extents: Extents) -> bytes:
    """Return the key of a slice in the index: its name, number of dimensions and extents."""
    key = b"\x00" + name.encode() + b"\x00\x01" + bytes([1, len(extents)])
    return key + b"".join(_ordered(n) for extent in extents for n in extent)


def _ordered(value: int) -> bytes:
    """Encode a number so that bytes sort like numbers: n bytes begin with n one-bits."""
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
    """Yield the number and the uninterpreted value of each field of a message."""
    position = 0
    while position < len(data):
        tag, position = varint(data, position, where)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, position = varint(data, position, where)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                size, position = varint(data, position, where)
            if size is None or position + size > len(data):
                raise FormatError(f"{where} is damaged: it has an invalid entry")
            value = data[position : position + size]
            position += size
        yield tag >> 3, value


def _entry(data: bytes, where: str) -> TensorEntry:
    """Parse a BundleEntryProto."""
    plain = {1: "dtype", 3: "shard", 4: "offset", 5: "size"}
    values: dict[str, int] = {}
    shape: tuple[int, ...] = ()
    slices: list[Extents] = []
    for number, value in _fields(data, where):
        if number in plain and isinstance(value, int):
            values[plain[number]] = _signed(value)
        elif number == 2 and isinstance(value, bytes):
            dims = [dict(_fields(dim, where)) for dim in _dimensions(value, 2, where)]
            shape = tuple(_number(dim.get(1, 0), where) for dim in dims)
        elif number == 6 and isinstance(value, bytes) and len(value) == 4:
            values["checksum"] = struct.unpack("<I", value)[0]
        elif number == 7 and isinstance(value, bytes):
            extents = [dict(_fields(extent, where)) for extent in _dimensions(value, 1, where)]
            slices.append(
                tuple(
                    (_number(e.get(1, 0), where), _number(e[2], where) if 2 in e else FULL)
                    for e in extents
                )
            )
    return TensorEntry(**values, shape=shape, slices=tuple(slices))


def _dimensions(data: bytes, number: int, where: str) -> list[bytes]:
    """Return the message about each dimension of a tensor or slice."""
    messages: list[bytes] = []
    for n, value in _fields(data, where):
        if n != number:
            continue
        if not isinstance(value, bytes):
            raise FormatError(f"{where} is damaged: it has an invalid entry")
        messages.append(value)
        if len(messages) > MOST_DIMENSIONS:
            raise FormatError(f"{where}: a tensor has more than {MOST_DIMENSIONS} dimensions")
    return messages


def _number(value: int | bytes, where: str) -> int:
    if isinstance(value, bytes) or not 0 <= _signed(value) < 1 << 48:
        raise FormatError(f"{where} is damaged: a tensor in it has the size {value!r:.60}")
    return value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _printable(key: bytes) -> str:
    return repr(key.decode("utf-8", "replace")[:200])
