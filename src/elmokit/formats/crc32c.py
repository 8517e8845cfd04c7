"""CRC-32C, the checksum of LevelDB and TensorFlow files, in NumPy and nearly as fast as memory.

A CRC is the remainder of the message, read as a polynomial over {0, 1}, by a polynomial of degree
32. That one divides x^6777 + x^484 + x^100 + 1, and therefore (squaring over {0, 1} doubles the
exponents and nothing else) also x^6777k + x^484k + x^100k + 1 for k = 8 and k = 64. So element j of
the message, of k bits, may be removed if it is added (XOR) to the elements 6293, 6677 and 6777
further on: a long message shrinks by adding large arrays, first of 64-bit words, then of bytes, and
a table does the rest, bit for bit the same remainder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

POLYNOMIAL = 0x82F63B78
"""The polynomial in reflected form: the lowest bit is the highest power, x^31."""
DEGREE = 6777
"""Degree of the sparse multiple of the polynomial."""
STEPS = (DEGREE - 484, DEGREE - 100, DEGREE)
"""Distances at which a removed element is added again, smallest first."""

_MASK_DELTA = 0xA282EAD8
_ALL = 0xFFFFFFFF


def crc32c(data: bytes | memoryview | npt.NDArray[np.uint8]) -> int:
    """Return the CRC-32C of bytes."""
    raw = np.frombuffer(data, np.uint8)
    head = min(-raw.ctypes.data % 8, len(raw))  # words must be aligned
    register = _by_table(raw[:head], _ALL)
    raw = raw[head:]
    count = len(raw) // 8
    if count > DEGREE:
        words = _shrink(raw[: 8 * count].view("<u8"), register)
        raw = np.concatenate([words.view(np.uint8), raw[8 * count :]])
        register = 0  # it was added to the first word
    if len(raw) > DEGREE + 4:
        raw = raw.copy()
        raw[:4] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)
        raw = _shrink(raw, 0)
        register = 0
    return _by_table(raw, register) ^ _ALL


def mask_checksum(crc: int) -> int:
    """Return a checksum as the files store it: masked, since data may contain checksums."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL


def _shrink(elements: npt.NDArray[Any], first: int) -> npt.NDArray[Any]:
    """Return `DEGREE` elements with the same remainder; `first` is added to the first element."""
    pending = np.zeros(DEGREE, elements.dtype)  # to be added to the next elements
    pending[0] = first
    start, end = 0, len(elements) - DEGREE
    while start < end:
        n = min(STEPS[0], end - start)
        removed = elements[start : start + n] ^ pending[:n]
        pending[:-n] = pending[n:]
        pending[-n:] = 0
        for step in STEPS:
            pending[step - n : step] ^= removed
        start += n
    rest: npt.NDArray[Any] = elements[start:] ^ pending
    return rest


def _by_table(data: npt.NDArray[np.uint8], register: int) -> int:
    for byte in data.tobytes():
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return register


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()
