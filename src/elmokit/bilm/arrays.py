"""Large arrays in memory of their own, which goes back to the system as soon as they are freed.

Weights that are read to be packed, and the layers of a batch, live for a moment and are large. From
malloc they would leave holes: glibc keeps freed memory of up to 32 MB for itself, and small arrays
that were created meanwhile keep it from shrinking.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

MAPPED_BYTES = 1 << 20
"""Smallest array that gets memory of its own; malloc is quicker for smaller ones."""
PRODUCT_BYTES = 64 << 20
"""Twice what OpenBLAS takes per thread on x86-64 (32 MB, measured)."""


def empty_array(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return a new array of unspecified content, like `np.empty`."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < MAPPED_BYTES or not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows has no such mappings
        return np.empty(shape, kind)
    try:
        mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size:,} bytes of memory are not available: {error}") from None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system without huge pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapping, kind).reshape(shape)


def check_room_for_products(threads: int) -> None:
    """Raise `MemoryError` if there is no memory for the buffers of NumPy's matrix products.

    OpenBLAS takes them when it needs them, and ends the process if it gets none.

    Args:
        threads: Number of threads that multiply.
    """
    np.empty(max(1, threads) * PRODUCT_BYTES, np.uint8)  # only reserved, and given back
