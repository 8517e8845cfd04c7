"""Training in several processes, started by `torchrun`.

Each process computes the gradients of its shards; sums and rows are exchanged, and every process
takes the same optimizer step. CPUs communicate through gloo, GPUs through nccl. Knows nothing about
networks.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch
from torch import Tensor


class ProcessGroup(Protocol):
    """The processes that train together."""

    rank: int
    """Number of this process, from 0."""
    world: int
    """Number of processes."""

    def sum_(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes, the same bits in each of them."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return every process's tensor by rank; their first axes may differ in length."""

    def broadcast(self, value: float) -> float:
        """Return the value of the first process."""

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""

    def close(self) -> None:
        """Leave the group, at the end of the work or after an error."""


class SingleProcess:
    """The group of a process that trains alone."""

    rank, world = 0, 1

    def sum_(self, tensor: Tensor) -> None:
        """Leave the tensor as it is."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return this process's tensor as the only one."""
        return [tensor]

    def broadcast(self, value: float) -> float:
        """Return the value unchanged."""
        return value

    def any(self, flag: bool) -> bool:
        """Return the flag unchanged."""
        return flag

    def close(self) -> None:
        """Do nothing."""


class TorchProcessGroup:
    """The group of processes that `torchrun` started."""

    def __init__(self, device: torch.device) -> None:
        """Join the other processes, which the environment variables of torchrun name."""
        import torch.distributed

        self._dist: Any = torch.distributed
        self._device = device
        self._dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank: int = self._dist.get_rank()
        self.world: int = self._dist.get_world_size()

    def sum_(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes."""
        self._dist.all_reduce(tensor)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return every process's tensor: exchange lengths, then rows padded to the longest."""
        own_length = torch.tensor([len(tensor)], device=tensor.device)
        lengths = [torch.empty_like(own_length) for _ in range(self.world)]
        self._dist.all_gather(lengths, own_length)
        longest = max(int(length) for length in lengths)
        padded = tensor.new_zeros((longest, *tensor.shape[1:]))
        padded[: len(tensor)] = tensor
        gathered = [torch.empty_like(padded) for _ in range(self.world)]
        self._dist.all_gather(gathered, padded)
        return [rows[: int(length)] for rows, length in zip(gathered, lengths, strict=True)]

    def broadcast(self, value: float) -> float:
        """Return the value of the first process."""
        tensor = torch.tensor([value], dtype=torch.float64, device=self._device)
        self._dist.broadcast(tensor, 0)
        return float(tensor)

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""
        flags = torch.tensor([int(flag)], device=self._device)
        self.sum_(flags)
        return bool(flags)

    def close(self) -> None:
        """Leave the group without waiting for the others, which may have failed."""
        self._dist.destroy_process_group()


def world_size() -> int:
    """Return how many processes torchrun started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join_process_group(device: torch.device) -> ProcessGroup:
    """Return the group of this process."""
    return TorchProcessGroup(device) if world_size() > 1 else SingleProcess()


def local_device(name: str) -> torch.device:
    """Return the device of this process; each process of a machine gets a GPU of its own."""
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device(name)
