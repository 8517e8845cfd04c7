"""Datasets of foreign HDF5 files, with care: mapped where they can be, never from other files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError


def check_inside(dataset: Any, file: str, name: str) -> None:
    """Refuse a dataset that keeps its numbers in another file."""
    if dataset.external is not None or dataset.is_virtual:
        raise FormatError(f"{file}: {name} keeps its numbers in another file; refused")


def numbers(dataset: Any, mapped: npt.NDArray[np.uint8] | None) -> npt.NDArray[Any]:
    """The content of a dataset: a view of the mapped file where it lies there in one piece."""
    start = dataset.id.get_offset()
    end = 0 if start is None else start + dataset.nbytes
    array: npt.NDArray[Any]
    if mapped is None or not 0 < end <= len(mapped) or start % dataset.dtype.itemsize:
        array = dataset[...]
    else:
        array = mapped[start:end].view(dataset.dtype).reshape(dataset.shape).view(np.ndarray)
    return array
