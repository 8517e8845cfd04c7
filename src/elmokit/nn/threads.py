"""The number of threads that PyTorch uses, for the time of a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let PyTorch use this many threads inside the `with` block, and restore the caller's number.

    Small networks gain nothing from several threads, and lose much on a busy machine.
    """
    previous = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(previous)
