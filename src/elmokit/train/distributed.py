"""Several processes that learn together, started by `torchrun`. The only file that names them.

Each computes the gradients of its shards; sums and rows go round, and everyone takes the same step.
gloo between CPUs, nccl between GPUs. Knows nothing about networks.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch
from torch import Tensor


class Group(Protocol):
    """The processes that work together."""

    rank: int
    world: int

    def add_up(self, tensor: Tensor) -> None:
        """Replace it by the sum over all processes, the same bits everywhere."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Everyone's tensor, in the order of ranks; the first axis may differ in length."""

    def agree(self, value: float) -> float:
        """The first process's value."""

    def any(self, flag: bool) -> bool:
        """Whether it is true of any process."""

    def close(self) -> None:
        """The work is done, or this process cannot go on."""


class Alone:
    """One process."""

    rank, world = 0, 1

    def add_up(self, tensor: Tensor) -> None:
        """Nothing to add."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Only this one."""
        return [tensor]

    def agree(self, value: float) -> float:
        """No one to disagree with."""
        return value

    def any(self, flag: bool) -> bool:
        """Of this one."""
        return flag

    def close(self) -> None:
        """Nothing to do."""


class Together:
    """What `torchrun` started."""

    def __init__(self, device: torch.device) -> None:
        """Meet the others; torchrun's environment variables say where."""
        import torch.distributed

        self._comm: Any = torch.distributed
        self._device = device
        self._comm.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank: int = self._comm.get_rank()
        self.world: int = self._comm.get_world_size()

    def add_up(self, tensor: Tensor) -> None:
        """Replace it by the sum over all processes."""
        self._comm.all_reduce(tensor)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Everyone's tensor: lengths first, then rows padded to the longest."""
        mine = torch.tensor([len(tensor)], device=tensor.device)
        lengths = [torch.empty_like(mine) for _ in range(self.world)]
        self._comm.all_gather(lengths, mine)
        longest = max(int(length) for length in lengths)
        padded = tensor.new_zeros((longest, *tensor.shape[1:]))
        padded[: len(tensor)] = tensor
        found = [torch.empty_like(padded) for _ in range(self.world)]
        self._comm.all_gather(found, padded)
        return [rows[: int(length)] for rows, length in zip(found, lengths, strict=True)]

    def agree(self, value: float) -> float:
        """The first process's value."""
        tensor = torch.tensor([value], dtype=torch.float64, device=self._device)
        self._comm.broadcast(tensor, 0)
        return float(tensor)

    def any(self, flag: bool) -> bool:
        """Whether it is true of any process."""
        flags = torch.tensor([int(flag)], device=self._device)
        self.add_up(flags)
        return bool(flags)

    def close(self) -> None:
        """Leave, without waiting: the others may be in trouble."""
        self._comm.destroy_process_group()


def processes() -> int:
    """How many torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join(device: torch.device) -> Group:
    """The group of this process."""
    return Together(device) if processes() > 1 else Alone()


def local_device(name: str) -> torch.device:
    """The device of this process: `cuda` is the one that its number on the machine says."""
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device(name)
