"""Whether learning may use the compiled kernel: it is there, and the tensors are its kind.

Where not, the plain PyTorch beside every use computes the same. Knows nothing about networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.engine import native

_allowed = True


def usable(*tensors: Tensor) -> bool:
    """Whether the kernel can take these tensors."""
    return (
        _allowed
        and native.available()
        and all(x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
    )


@contextmanager
def plain() -> Iterator[None]:
    """The switch, for tests and comparisons: within, everything runs in plain PyTorch."""
    global _allowed
    before, _allowed = _allowed, False
    try:
        yield
    finally:
        _allowed = before


def floats(x: Tensor) -> npt.NDArray[np.float32]:
    """A tensor as the kernel takes it, without copying what lies in order."""
    array: npt.NDArray[np.float32] = x.detach().contiguous().numpy()
    return array
