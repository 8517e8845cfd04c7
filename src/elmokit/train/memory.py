"""Ask the C library to keep freed memory at hand.

A step of training frees and asks for the same large arrays again. glibc would give each of them
back to the system, and the pages of a new one cost time when they are touched first.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_SIZES = 1 << 30, 1 << 25
"""What is asked for, and the most that a glibc before 2.35 grants."""


def keep_memory() -> bool:
    """For the rest of the process; says whether the C library is one that listens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # not glibc
        return False
    return all(
        any(mallopt(what, size) for size in _SIZES) for what in (_MMAP_THRESHOLD, _TRIM_THRESHOLD)
    )
