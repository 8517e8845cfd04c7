"""Weights in bfloat16: float32 with the lower half of the bits rounded away.

The kernel stores weights so with `dtype="bfloat16"` and multiplies float32 activations with them;
the reference on rounded weights computes the same to 1e-5. Biases, characters and the convolution
stay float32. Where the CPU multiplies bfloat16 (`avx512_bf16`), the kernel rounds the activations
too; `round_to_bfloat16` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray, Weights


def round_to_bfloat16(array: npt.NDArray[Any]) -> FloatArray:
    """Return the nearest numbers with 8 significant bits, as float32; ties go to the even one."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded &= np.uint32(0xFFFF0000)
    values: FloatArray = rounded.view(np.float32)
    return np.where(np.isnan(array), np.float32(np.nan), values)


def is_rounded(name: str) -> bool:
    """Return whether `dtype="bfloat16"` rounds these weights: those of matrix products."""
    convolved = name.startswith("characters.convolution")
    return name.endswith(".weight") and not convolved and not name.startswith("softmax")


class RoundedWeights(Mapping[str, npt.NDArray[Any]]):
    """Weights of which those of matrix products are rounded when they are read."""

    def __init__(self, weights: Weights) -> None:
        """Wrap weights, which stay as they are."""
        self._weights = weights

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        array = self._weights[name]
        return round_to_bfloat16(array) if is_rounded(name) else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)
