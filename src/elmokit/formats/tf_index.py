"""Reading the `.index` file of a TensorFlow checkpoint: a sorted table of LevelDB.

A file consists of blocks of sorted entries, one block with the positions of the others, and a
footer of 48 bytes with the position of that one. Keys omit what they share with the key before.
Every block has a checksum, which is verified. Knows nothing about what the entries mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from elmokit.errors import FormatError
from elmokit.formats.crc32c import crc32c, mask_checksum

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
TRAILER_BYTES = 5
"""Bytes after each block: its compression (0 for none) and its checksum."""
LARGEST_FILE = 64 << 20
"""Size in bytes of an index at most; that of the largest ELMo has a few kilobytes."""
LONGEST_KEY = 4096
"""Length of a key at most: since keys share prefixes, a small file could fill the memory."""
MOST_ENTRIES = 100_000
"""Number of entries at most; the index of the largest ELMo has fewer than a hundred."""
MOST_SHARING = 16
"""Length of all keys at most, in multiples of the file."""


def read_table(data: bytes, where: str) -> dict[bytes, bytes]:
    """Return all entries of a table.

    Args:
        data: The content of the file.
        where: Name of the file for error messages.
    """
    if len(data) < FOOTER_BYTES or struct.unpack("<Q", data[-8:])[0] != MAGIC:
        raise FormatError(
            f"{where} is truncated, or not the index of a TensorFlow checkpoint; copy it again"
        )
    footer = data[-FOOTER_BYTES:-8]
    _, end = _handle(footer, 0, where)  # the first block holds statistics, which are not needed
    (start, size), _ = _handle(footer, end, where)
    table: dict[bytes, bytes] = {}
    last = None
    read_up_to = key_bytes = 0
    for _, value in _entries(_block(data, start, size, where), where):
        (start, size), _ = _handle(value, 0, where)
        if start < read_up_to:  # the same block again and again would take forever
            raise FormatError(f"{where} is damaged: it refers to the block at {start} twice")
        read_up_to = start + size + TRAILER_BYTES
        for key, content in _entries(_block(data, start, size, where), where):
            if last is not None and key <= last:
                raise FormatError(
                    f"{where} is damaged: the key {key!r:.100} comes after {last!r:.100}"
                )
            last = key
            table[key] = content
            key_bytes += len(key)
            if len(table) > MOST_ENTRIES or key_bytes > MOST_SHARING * len(data):
                raise FormatError(
                    f"{where} has {len(table):,} entries or more, with names of {key_bytes:,} "
                    "bytes; that is not the index of a biLM"
                )
    return table


def varint(data: bytes, start: int, where: str) -> tuple[int, int]:
    """Return an unsigned number of up to 64 bits, stored in bytes of seven, and where it ends."""
    value = 0
    for i, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & (1 << 64) - 1, start + i + 1
    raise FormatError(f"{where} is damaged: a number in it does not end")


def _handle(data: bytes, start: int, where: str) -> tuple[tuple[int, int], int]:
    """Return the offset and the size of a block, and where this information ends."""
    offset, start = varint(data, start, where)
    size, start = varint(data, start, where)
    return (offset, size), start


def _block(data: bytes, start: int, size: int, where: str) -> bytes:
    """Return the content of a block, after verifying its checksum."""
    end = start + size
    if end + TRAILER_BYTES > len(data) - FOOTER_BYTES:
        raise FormatError(
            f"{where} is damaged: it refers to a block of {size} bytes at {start}, but has only "
            f"{len(data)} bytes"
        )
    compression, stored = struct.unpack("<BI", data[end : end + TRAILER_BYTES])
    if mask_checksum(crc32c(data[start : end + 1])) != stored:
        raise FormatError(
            f"{where} is damaged: the checksum of the block at {start} is wrong. Copy it again"
        )
    if compression != 0:
        raise FormatError(
            f"{where} has a compressed block (type {compression}), which is not supported; load "
            "and save the checkpoint with TensorFlow once"
        )
    return data[start:end]


def _entries(block: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block.

    After them come the positions of complete keys, which are not needed to read all entries.
    """
    restarts = struct.unpack("<I", block[-4:])[0] if len(block) >= 4 else 0
    end = len(block) - 4 * (restarts + 1)
    if end < 0 or restarts == 0:
        raise FormatError(f"{where} is damaged: a block of {len(block)} bytes has no entries")
    position, key = 0, b""
    while position < end:
        shared, position = varint(block, position, where)
        own, position = varint(block, position, where)
        length, position = varint(block, position, where)
        if shared > len(key) or position + own + length > end or shared + own > LONGEST_KEY:
            raise FormatError(f"{where} is damaged: an entry after {key!r:.100} is out of bounds")
        key = key[:shared] + block[position : position + own]
        position += own
        yield key, block[position : position + length]
        position += length
