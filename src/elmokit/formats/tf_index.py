"""The table of keys and values in a TensorFlow checkpoint's `.index`: LevelDB's sorted table.

A file is blocks of sorted entries, then one block that says where those are, then a footer of 48
bytes that says where that one is. Keys leave out what they share with the key before. Every block
has a checksum, and all of them are verified. Knows nothing about what the entries mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from elmokit.errors import FormatError
from elmokit.formats.crc32c import crc32c, masked

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
TRAILER_BYTES = 5
"""Behind each block: its compression (0 for none) and its checksum."""
LARGEST_FILE = 64 << 20
"""An index holds names and places; that of the largest ELMo has a few kilobytes."""
LONGEST_KEY = 4096
"""Keys grow from one another: without a bound, a small file could fill the memory."""


def read_table(data: bytes, where: str) -> dict[bytes, bytes]:
    """All entries; `where` is the file's name for messages."""
    if len(data) < FOOTER_BYTES or struct.unpack("<Q", data[-8:])[0] != MAGIC:
        raise FormatError(
            f"{where} does not end like the index of a TensorFlow checkpoint: it is truncated "
            "or something else. Copy it again"
        )
    footer = data[-FOOTER_BYTES:-8]
    _, end = _handle(footer, 0, where)  # the first block it names holds statistics, of no use
    (start, size), _ = _handle(footer, end, where)
    table: dict[bytes, bytes] = {}
    last = None
    for _, value in _entries(_block(data, start, size, where), where):
        handle, _ = _handle(value, 0, where)
        for key, content in _entries(_block(data, *handle, where), where):
            if last is not None and key <= last:
                raise FormatError(f"{where} is damaged: the key {key!r} stands after {last!r}")
            last = key
            table[key] = content
    return table


def varint(data: bytes, start: int, where: str) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, seven bits a byte, and the place behind it."""
    value = 0
    for i, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & (1 << 64) - 1, start + i + 1
    raise FormatError(f"{where} is damaged: a number in it does not end")


def _handle(data: bytes, start: int, where: str) -> tuple[tuple[int, int], int]:
    """Where a block is: offset and size; and the place behind."""
    offset, start = varint(data, start, where)
    size, start = varint(data, start, where)
    return (offset, size), start


def _block(data: bytes, start: int, size: int, where: str) -> bytes:
    """The content of a block, its checksum verified."""
    end = start + size
    if end + TRAILER_BYTES > len(data) - FOOTER_BYTES:
        raise FormatError(
            f"{where} is damaged: it speaks of a block at {start}, {size} bytes long, "
            f"but has only {len(data)} bytes"
        )
    compression, stored = struct.unpack("<BI", data[end : end + TRAILER_BYTES])
    if masked(crc32c(data[start : end + 1])) != stored:
        raise FormatError(
            f"{where} is damaged: the checksum of its block at {start} is wrong. Copy it again"
        )
    if compression != 0:
        raise FormatError(
            f"{where} has a compressed block (type {compression}), which TensorFlow does not "
            "write; load and save the checkpoint with TensorFlow once"
        )
    return data[start:end]


def _entries(block: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block. Behind them stand the places where keys are whole, and their number;
    whoever reads all entries does not need them."""
    restarts = struct.unpack("<I", block[-4:])[0] if len(block) >= 4 else 0
    end = len(block) - 4 * (restarts + 1)
    if end < 0 or restarts == 0:
        raise FormatError(f"{where} is damaged: a block of {len(block)} bytes has no entries")
    place, key = 0, b""
    while place < end:
        shared, place = varint(block, place, where)
        own, place = varint(block, place, where)
        length, place = varint(block, place, where)
        if shared > len(key) or place + own + length > end or shared + own > LONGEST_KEY:
            raise FormatError(f"{where} is damaged: an entry after {key!r} is out of bounds")
        key = key[:shared] + block[place : place + own]
        place += own
        yield key, block[place : place + length]
        place += length
