"""What a Parquet file will take in memory, from its footer and the headers of its pages.

pyarrow believes what a file says: a dictionary of one long string and a run of a million references
to it are two kilobytes on disk and terabytes in memory. The headers are small structures in
Thrift's compact protocol, which is read here without pyarrow, before any page is unpacked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from elmokit.errors import FormatError

ALWAYS_ALLOWED = 1 << 30
"""Bytes that a row group may take in any case."""
MOST_GROWTH = 100
"""How many times its own size a row group of a larger file may take."""
HEADER_BYTES = 1 << 16
"""Bytes that are read for the header of a page, and a sixteenth of what a header may have."""
_DEEPEST = 16
_VALUE_BYTES = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # of physical types; 6 are strings
_FIXED_LENGTH = 7
_DICTIONARY_PAGE = 2
_BY_REFERENCE = {2, 8}  # encodings: PLAIN_DICTIONARY, RLE_DICTIONARY
_BY_PREFIX = 7  # DELTA_BYTE_ARRAY


class ColumnChunk(NamedTuple):
    """The values of one column in one row group."""

    column: str
    """Path of the column, with dots."""
    start: int
    """Where its pages begin in the file."""
    length: int
    """Number of bytes of its pages in the file."""
    size: int
    """Size in bytes before compression, as the footer says."""
    value_bytes: int | None
    """Size of one value, or of a reference to it; None for strings."""


class PageHeader(NamedTuple):
    """One page of a chunk."""

    values: int
    """Number of values."""
    size: int
    """Size in bytes before compression."""
    encoding: int
    """Number of the encoding; a dictionary has its own."""
    is_dictionary: bool
    """Whether this page is the dictionary that other pages refer to."""


def read_chunks(name: str) -> list[list[ColumnChunk]]:
    """Return the chunks of each row group of a Parquet file, in the order of its columns."""
    with _explain_damage(name), open(name, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        if total < 12:
            raise ValueError(f"it has {total} bytes")
        file.seek(total - 8)
        length = int.from_bytes(file.read(4), "little")
        if length > total - 12:
            raise ValueError(f"its footer has {length:,} bytes")
        file.seek(total - 8 - length)
        footer, _ = _parse_struct(file.read(length), 0)
        leaves = [leaf for leaf in footer[2][1:] if not leaf.get(5)]  # without children
        return [
            [
                _read_chunk(chunk[3], leaf, total)
                for chunk, leaf in zip(group[1], leaves, strict=True)
            ]
            for group in footer[4]
        ]


def check_memory(name: str) -> list[str]:
    """Raise `FormatError` if a row group would take much more memory than the file is large.

    Returns:
        Columns of strings that refer to dictionaries. They have to be read as dictionaries
        (`read_dictionary` of pyarrow), since one long string may stand for many.
    """
    allowed = max(ALWAYS_ALLOWED, MOST_GROWTH * os.path.getsize(name))
    by_reference: set[str] = set()
    for group in read_chunks(name):
        needed = 0
        for chunk in group:
            for page in _read_pages(name, chunk):
                each = chunk.value_bytes or 4
                if chunk.value_bytes is None and page.encoding == _BY_PREFIX:
                    each = page.size
                elif chunk.value_bytes is None and page.encoding in _BY_REFERENCE:
                    by_reference.add(chunk.column)
                needed += max(page.size, page.values * (each + 4))  # 4: where a list begins
        if needed > allowed:
            raise FormatError(
                f"{name} is refused: a row group may take {needed:,} bytes of memory, of a file "
                f"of {os.path.getsize(name):,} bytes; expected at most {allowed:,}"
            )
    return sorted(by_reference)


def longest_value(name: str, chunk: ColumnChunk) -> int:
    """Return a size in bytes that few strings of a chunk exceed, and none by more than a page."""
    longest = 0
    dictionary = 0
    for page in _read_pages(name, chunk):
        if page.is_dictionary:
            dictionary = max(dictionary, page.size)
        elif page.encoding in _BY_REFERENCE:
            longest = max(longest, dictionary)
        elif page.encoding == _BY_PREFIX:
            longest = max(longest, page.size)
        else:
            longest = max(longest, page.size // max(1, page.values))
    return longest


def _read_chunk(meta: dict[int, Any], leaf: dict[int, Any], total: int) -> ColumnChunk:
    start, length, size = meta[9], meta[7], meta[6]
    if 0 < meta.get(11, 0) < start:
        start = meta[11]
    if min(start, length, size) < 0 or start + length > total:
        raise ValueError(f"a column has {length:,} bytes at byte {start:,}")
    if not meta[5]:  # no values: what is said of pages may be wrong, and is not read
        length = 0
    kind = leaf[1]
    value_bytes = leaf[2] if kind == _FIXED_LENGTH else _VALUE_BYTES.get(kind)
    if not 0 <= (value_bytes or 0) < 1 << 31:
        raise ValueError(f"a column has values of {value_bytes:,} bytes")
    path = ".".join(part.decode("utf-8", "replace") for part in meta[3])
    return ColumnChunk(path, start, length, size, value_bytes)


def _read_pages(name: str, chunk: ColumnChunk) -> Iterator[PageHeader]:
    with _explain_damage(name), open(name, "rb") as file:
        position, end = chunk.start, chunk.start + chunk.length
        while position < end:
            header, header_bytes = _read_header(file, position, end)
            kind, size, stored = header[1], header[2], header[3]
            # The header of a data page, of a dictionary, or of a data page of version 2.
            details = header.get(5) or header.get(7) or header.get(8) or {}
            values = details.get(1, 0)
            if min(size, stored, values) < 0:
                raise ValueError(f"a page has {values:,} values in {size:,} bytes")
            encoding = details.get(4 if 8 in header else 2, 0)
            yield PageHeader(values, size, encoding, kind == _DICTIONARY_PAGE)
            position += header_bytes + stored


def _read_header(file: IO[bytes], position: int, end: int) -> tuple[dict[int, Any], int]:
    size = HEADER_BYTES
    while True:
        file.seek(position)
        data = file.read(min(size, end - position))
        try:
            return _parse_struct(data, 0)
        except IndexError:  # statistics may have long strings
            if size >= 16 * HEADER_BYTES or len(data) < size:
                raise
        size *= 16


@contextmanager
def _explain_damage(name: str) -> Iterator[None]:
    """Turn what is raised while a header is read into a `FormatError` that names the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError(
            f"{name} cannot be read as a Parquet file: its headers are damaged ({error!r:.200})"
        ) from None


def _parse_struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a structure by their numbers, and the position of its end.

    Raises:
        IndexError: The data ends within the structure.
        ValueError: It is not such a structure.
    """
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if not head:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _parse_integer(data, at)
        kind = head & 15
        if kind in (1, 2):
            fields[number] = kind == 1
        else:
            fields[number], at = _parse_value(data, at, kind, depth)


def _parse_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("structures are nested too deep")
    if kind in (1, 2, 3):
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _parse_integer(data, at)
    if kind == 12:
        return _parse_struct(data, at, depth + 1)
    if kind in (9, 10):
        count, kind = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _parse_varint(data, at)
        values = []
        for _ in range(count):
            value, at = _parse_value(data, at, kind, depth + 1)
            values.append(value)
        return values, at
    if kind == 8:
        length, at = _parse_varint(data, at)
    elif kind == 7:
        length = 8
    else:  # 11 is a map, which Parquet does not use
        raise ValueError(f"there is a value of the type {kind}")
    if at + length > len(data):
        raise IndexError("the data ends within a value")
    return data[at : at + length], at + length


def _parse_integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _parse_varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _parse_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("an integer has more than ten bytes")
