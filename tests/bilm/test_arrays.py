"""Large arrays in memory of their own: like any array, and returned to the system."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from elmokit.bilm.arrays import MAPPED_BYTES, empty_array


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 0, 4), (MAPPED_BYTES // 4,), (3, 1 << 19)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_an_array_has_the_shape_and_type_and_can_be_written(
    shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    array = empty_array(shape, dtype)
    assert array.shape == shape and array.dtype == dtype and array.flags.c_contiguous
    array[...] = 7
    assert (array == 7).all()


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")
def test_a_freed_array_returns_its_memory_though_smaller_ones_came_after_it() -> None:
    """malloc would keep what lies before the smaller ones, once it has freed a large array."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = resident()
    kept = []
    for _ in range(6):
        large = empty_array((24 << 20,), np.uint8)
        large[:] = 1
        kept.append(np.ones(1 << 14))
        del large
    assert resident() - before < 12 << 20
