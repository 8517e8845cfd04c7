"""The files of a tar archive, compressed or not, held in memory and never written to a disk.

A tar archive has no table of contents, so it is read once from its beginning to its end: a header
of 512 bytes per file, then the file, filled up to a multiple of 512. A name that is too long for
its header is in an entry before it, of GNU tar or of POSIX (pax). Links, devices and names that
lead out of the archive are refused, and so is one that unpacks to far more than it is: weights do
not compress well. Not by `tarfile`, which copies the pax records of an archive into each of its
entries, and takes quadratic time for damaged ones. Knows nothing about what the files mean.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from elmokit.errors import FormatError
from elmokit.text.compressed import HEAD_BYTES, ByteStream, decompress, explain_damage

LARGEST_ARCHIVE = 8 << 30
"""Size in bytes of all files at most."""
LARGEST_RATIO = 20
"""Compression ratio at most, beyond `FREE_BYTES`."""
FREE_BYTES = 64 << 20
"""Size in bytes that may have any compression ratio."""
MOST_FILES = 10_000
"""Number of entries at most."""
BLOCK = 512
"""Size in bytes of a header; files are filled up to a multiple of it."""
LARGEST_RECORDS = 1 << 20
"""Size in bytes at most of a long name, or of the pax records of an entry."""
REGULAR = (b"0", b"\0", b"7")
"""Kinds of entries that are files."""


class TarEntry(NamedTuple):
    """The sizes of a file, under the names that zip archives use."""

    file_size: int
    compress_size: int


class TarArchive:
    """A tar archive that was read, with the methods of `zipfile.ZipFile` that are used here."""

    def __init__(self, path: Path) -> None:
        """Read all files of an archive."""
        self._files: dict[str, bytes] = {}
        limit = min(LARGEST_ARCHIVE, FREE_BYTES + LARGEST_RATIO * path.stat().st_size)
        with path.open("rb") as raw, explain_damage(str(path)):
            head = raw.read(HEAD_BYTES)
            raw.seek(0)
            plain = decompress(raw, head, str(path))
            stream: Any = io.BufferedReader(_LimitedReader(plain, limit, str(path)), 1 << 18)
            for count, (header, data) in enumerate(_read_entries(stream, limit, str(path))):
                if count == MOST_FILES:
                    raise FormatError(f"{path} has more than {MOST_FILES:,} entries")
                self._add(header, data, path)
            while stream.read(1 << 20):  # to its end, where the checksum of compressed data is
                pass

    def _add(self, header: _Header, data: bytes, path: Path) -> None:
        if header.is_directory:
            return
        parts = [part for part in header.name.split("/") if part not in ("", ".")]
        if header.kind not in REGULAR or header.name.startswith("/") or ".." in parts or not parts:
            raise FormatError(
                f"{path} holds {header.name[:100]!r}, which is a link, a device or a path that "
                "leads out of the archive; nothing was read"
            )
        name = str(PurePosixPath(*parts))
        if name in self._files:
            raise FormatError(f"{path} holds {name[:100]!r} twice; nothing was read")
        self._files[name] = data

    def namelist(self) -> list[str]:
        """Return the names of all files."""
        return list(self._files)

    def getinfo(self, name: str) -> TarEntry:
        """Return the sizes of a file."""
        size = len(self._files[name])
        return TarEntry(size, size)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return self._files[name]


def is_tar(path: Path) -> bool:
    """Return whether a file is a tar archive, by its name or by its first bytes."""
    if path.name.lower().endswith((".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")):
        return True
    try:
        with path.open("rb") as raw:
            head = raw.read(HEAD_BYTES)
            raw.seek(0)
            with explain_damage(str(path)):
                start = decompress(raw, head, str(path)).read(512) or b""
    except (OSError, FormatError):
        return False
    return start[257:262] == b"ustar"


@dataclass
class _Header:
    """What the header of an entry says."""

    name: str
    kind: bytes
    size: int

    @property
    def is_directory(self) -> bool:
        return self.kind == b"5" or (self.kind == b"\0" and self.name.endswith("/"))


def _read_entries(stream: BinaryIO, limit: int, where: str) -> Iterator[tuple[_Header, bytes]]:
    """Yield the header and the content of every entry, with the name and size that count.

    Args:
        stream: The archive, decompressed.
        limit: Size in bytes at most of an entry.
        where: Name of the file for messages.
    """
    start = True
    changes: dict[bytes, bytes] = {}  # of the entry that follows
    while block := stream.read(BLOCK):
        if not block.strip(b"\0") and not start:
            return
        header = _parse_header(block, where)
        start = False
        if header.kind in (b"L", b"K", b"x", b"X", b"g"):
            if header.size > LARGEST_RECORDS:
                raise FormatError(f"{where}: the name of an entry has {header.size:,} bytes")
            records = _read_content(stream, header.size, where)
            if header.kind == b"L":
                changes[b"path"] = records.rstrip(b"\0")
            elif header.kind in (b"x", b"X"):
                changes |= _parse_records(records, where)
            continue
        if b"path" in changes:
            header.name = changes[b"path"].decode("utf-8", "replace")
        if b"size" in changes:
            header.size = _number(changes[b"size"], 10, where)
        if header.kind == b"S" or any(key.startswith(b"GNU.sparse") for key in changes):
            raise FormatError(  # it unpacks to as many zeros as it says
                f"{where} holds {header.name[:100]!r} with holes in it; nothing was read. Pack it "
                "again without --sparse"
            )
        changes = {}
        if header.size > limit:
            raise FormatError(_too_large(where))
        regular = header.kind in REGULAR and not header.is_directory
        yield header, _read_content(stream, header.size, where) if regular else b""
    if start:
        raise FormatError(f"{where} is not a readable tar archive: it is empty")


def _parse_header(block: bytes, where: str) -> _Header:
    """Parse a block of 512 bytes, after comparing its checksum: the sum of all other bytes."""
    total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if len(block) < BLOCK or _number(block[148:156], 8, where) != total:
        raise FormatError(f"{where} is not a readable tar archive: it is truncated or damaged")
    name, prefix = _text(block[:100]), _text(block[345:500])
    if prefix and block[257:263] == b"ustar\0":
        name = f"{prefix}/{name}"
    field = block[124:136]
    size = int.from_bytes(field[1:], "big") if field[0] == 0x80 else _number(field, 8, where)
    return _Header(name, block[156:157], size)


def _parse_records(data: bytes, where: str) -> dict[bytes, bytes]:
    """Parse pax records: a length, which counts all of it, a space, `key=value` and a newline."""
    records: dict[bytes, bytes] = {}
    place = 0
    while place < len(data):
        digits, _, _ = data[place : place + 10].partition(b" ")
        length = _number(digits, 10, where)
        record = data[place : place + length]
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if not len(digits) + 1 < length == len(record) or record[-1:] != b"\n" or not equals:
            raise FormatError(f"{where} is not a readable tar archive: a pax record is damaged")
        records[key] = value
        place += length
    return records


def _read_content(stream: BinaryIO, size: int, where: str) -> bytes:
    """Return the bytes after a header, and skip what fills them up to a multiple of a block."""
    data = stream.read(size)
    if len(data) < size or len(stream.read(-size % BLOCK)) < -size % BLOCK:
        raise FormatError(f"{where} is not a readable tar archive: unexpected end of data")
    return data


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _number(field: bytes, base: int, where: str) -> int:
    """Return a number of up to 20 digits; spaces and zero bytes around it are not part of it."""
    digits = field.partition(b"\0")[0].strip(b" ") or b"0"
    if not re.fullmatch(rb"[0-7]{1,20}" if base == 8 else rb"[0-9]{1,20}", digits):
        raise FormatError(
            f"{where} is not a readable tar archive: it has {digits[:20]!r} where a number is "
            "expected"
        )
    return int(digits, base)


def _too_large(where: str) -> str:
    return (
        f"{where} unpacks to far more than a model and was not read: weights never compress that "
        "well"
    )


class _LimitedReader(io.RawIOBase):
    """A stream that refuses to go on after too many bytes."""

    def __init__(self, stream: ByteStream | BinaryIO, limit: int, name: str) -> None:
        self._stream, self._left, self._name = stream, limit, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer)) or b""
        self._left -= len(data)
        if self._left < 0:
            raise FormatError(_too_large(self._name))
        buffer[: len(data)] = data
        return len(data)
