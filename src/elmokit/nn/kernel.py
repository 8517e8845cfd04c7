"""Decides whether training may use the compiled kernel: is it installed, does it take the tensors?

Where it may not, the plain PyTorch code beside every use computes the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.engine import native

_enabled = True


def kernel_supports(*tensors: Tensor) -> bool:
    """Return whether the kernel is available and takes these tensors: float32 on the CPU."""
    return (
        _enabled
        and native.kernel_available()
        and all(x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
    )


@contextmanager
def without_kernel() -> Iterator[None]:
    """Run everything within the block in plain PyTorch, for tests and comparisons."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


def to_kernel_array(x: Tensor) -> npt.NDArray[np.float32]:
    """Return a tensor as a contiguous array, copied only if it is not contiguous."""
    array: npt.NDArray[np.float32] = x.detach().contiguous().numpy()
    return array
