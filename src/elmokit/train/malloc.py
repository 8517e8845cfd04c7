"""Ask the C library to keep freed memory for reuse.

A training step frees large arrays and allocates them again. glibc would return each of them to the
operating system, and touching the pages of a new one costs time.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h
_SIZES = 1 << 30, 1 << 25
"""The wanted threshold in bytes, and the largest that glibc before 2.35 accepts."""


def keep_freed_memory() -> bool:
    """Make malloc keep freed memory for the rest of the process; return whether that worked."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # not glibc
        return False
    return all(
        any(mallopt(parameter, size) for size in _SIZES)
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD)
    )
