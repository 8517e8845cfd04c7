"""Training in several processes, started by `torchrun` or a scheduler.

Each process computes the gradients of its shards; sums and rows are exchanged, and every process
takes the same optimizer step. CPUs communicate through gloo, GPUs through nccl. Only the first
process reads and writes the directory of a run; the others get from it what they need. A process
that dies or is cut off is noticed within a time limit, and named. Knows nothing about networks.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from elmokit.errors import ElmoError, TrainingError
from elmokit.train.heartbeats import POLL_SECONDS, Heartbeats
from elmokit.train.joining import agree_on_token

TIMEOUT_SECONDS = 300.0
"""Time after which a process that does not answer is taken as lost, by default."""
JOIN_SECONDS = 600.0
"""Time for all processes to start: packages on a network disk load slowly."""


class ProcessLost(TrainingError):
    """Another process of the group was killed, has failed, or cannot be reached."""


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

    def largest(self, number: int) -> int:
        """Return the largest number of all processes."""

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""

    def share(self, make: Callable[[], Any]) -> Any:
        """Return what the first process makes, a value for JSON; its error is everybody's."""

    def share_arrays(self, arrays: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """Return the arrays of the first process; the others give None."""

    def wait_for_all(self) -> None:
        """Wait until all processes have come here, however long their work takes."""

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

    def largest(self, number: int) -> int:
        """Return the number unchanged."""
        return number

    def any(self, flag: bool) -> bool:
        """Return the flag unchanged."""
        return flag

    def share(self, make: Callable[[], Any]) -> Any:
        """Return what the function returns."""
        return make()

    def share_arrays(self, arrays: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """Return the arrays unchanged."""
        return dict(arrays or {})

    def wait_for_all(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class TorchProcessGroup:
    """The group of processes that `torchrun` started."""

    def __init__(self, device: torch.device, timeout: float = TIMEOUT_SECONDS) -> None:
        """Join the other processes, which the environment variables of torchrun name.

        Args:
            device: Device that this process trains on.
            timeout: Seconds after which a process that does not answer is taken as lost.
        """
        import torch.distributed

        self._dist: Any = torch.distributed
        self._device, self._timeout = device, timeout
        with _explain_join():
            patience = timedelta(seconds=JOIN_SECONDS)
            found = self._dist.rendezvous("env://", timeout=patience)
            store, self.rank, self.world = next(found)
            token = agree_on_token(store, self.rank, self.world, JOIN_SECONDS)
            store = self._dist.PrefixStore(f"elmokit/{token}", store)
            self._dist.init_process_group(
                "nccl" if device.type == "cuda" else "gloo",
                store=store,
                rank=self.rank,
                world_size=self.world,
                timeout=timedelta(seconds=timeout),
            )
            self._beats = Heartbeats(store, self.rank, self.world)
            self._dist.barrier()
            self._beats.start()

    def sum_(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes."""
        with self._explain_errors():
            self._dist.all_reduce(tensor)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return every process's tensor: exchange lengths, then rows padded to the longest."""
        own_length = torch.tensor([len(tensor)], device=tensor.device)
        lengths = [torch.empty_like(own_length) for _ in range(self.world)]
        with self._explain_errors():
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
        self._broadcast_(tensor)
        return float(tensor)

    def largest(self, number: int) -> int:
        """Return the largest number of all processes."""
        numbers = torch.tensor([number], device=self._device)
        with self._explain_errors():
            self._dist.all_reduce(numbers, self._dist.ReduceOp.MAX)
        return int(numbers)

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""
        return bool(self.largest(int(flag)))

    def share(self, make: Callable[[], Any]) -> Any:
        """Return what the first process makes; the others wait, however long it takes."""
        outcome: dict[str, Any] = {}
        failure: BaseException | None = None
        if self.rank == 0:
            try:
                outcome = {"value": make()}
            except (ElmoError, OSError) as error:
                failure, outcome = error, {"error": str(error)}
        self.wait_for_all()
        data = np.frombuffer(json.dumps(outcome).encode(), np.uint8).copy()
        data = np.resize(data, int(self.broadcast(len(data))))
        tensor = torch.from_numpy(data).to(self._device)
        self._broadcast_(tensor)
        if failure is not None:
            raise failure
        outcome = json.loads(tensor.cpu().numpy().tobytes())
        if "error" in outcome:
            raise TrainingError(outcome["error"])
        return outcome["value"]

    def share_arrays(self, arrays: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """Return the arrays of the first process, in the memory of the CPU."""
        own = dict(arrays or {})
        shapes = self.share(lambda: [[n, str(a.dtype), list(a.shape)] for n, a in own.items()])
        for name, dtype, shape in shapes:
            kind = getattr(torch, dtype.removeprefix("torch."))
            array = own[name] if self.rank == 0 else torch.empty(shape, dtype=kind)
            sent = array.to(self._device).contiguous()
            self._broadcast_(sent)
            own[name] = sent.cpu()
        return own

    def wait_for_all(self) -> None:
        """Wait until all processes have come here; those that work for long keep beating."""
        meeting = self._beats.arrive()
        self._beats.wait_faster(True)
        try:
            while missing := self._beats.missing(meeting):
                for rank in missing:
                    silent = self._beats.silence(rank) > self._timeout
                    silent = silent or self._beats.store_is_gone
                    if silent or self._beats.has_left(rank):
                        raise ProcessLost(self._describe([rank] if silent else [], [rank]))
                time.sleep(POLL_SECONDS / 5)
        finally:
            self._beats.wait_faster(False)
        self.largest(0)  # nobody leaves before all have seen that all are here

    def close(self) -> None:
        """Leave the group without waiting for the others, which may have failed."""
        self._beats.leave()
        self._dist.destroy_process_group()

    def _broadcast_(self, tensor: Tensor) -> None:
        with self._explain_errors():
            self._dist.broadcast(tensor, 0)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn errors of communication into `ProcessLost`, which names who does not answer."""
        try:
            yield
        except RuntimeError as error:
            silent, left = self._beats.find_silent()
            raise ProcessLost(self._describe(silent, left)) from error

    def _describe(self, silent: list[int], left: list[int]) -> str:
        """Return what happened to other processes, for an error message."""
        if silent and (self._beats.store_is_gone or not self._beats.store_answers):
            names = ", ".join(map(self._beats.name, silent))
            where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            return (
                f"this process can reach neither {names} nor torchrun's store at {where}: the "
                "network is down, or the other hosts or processes are dead"
            )
        if silent:
            names = ", ".join(map(self._beats.name, silent))
            return (
                f"{names} no longer answers; it was killed, or its host or network is down "
                f"(noticed after at most {self._timeout:g} seconds: --timeout)"
            )
        if left:
            names = ", ".join(map(self._beats.name, left))
            return f"{names} has stopped; its own message says why"
        return (
            f"the processes no longer understand each other: one took more than {self._timeout:g} "
            "seconds for a step (--timeout), or a connection broke"
        )


@contextmanager
def _explain_join() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError, TimeoutError) as error:  # ValueError: missing variables
        reason = str(error).split("\n", 1)[0]
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise ProcessLost(
            f"process {os.environ.get('RANK')} of {os.environ.get('WORLD_SIZE')} could not join "
            f"the others at {where}: {reason}. Check that all of them were started and that their "
            "hosts reach each other (GLOO_SOCKET_IFNAME names the network interface to use)"
        ) from error


def world_size() -> int:
    """Return how many processes torchrun started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def process_group(device: torch.device, timeout: float = TIMEOUT_SECONDS) -> Iterator[ProcessGroup]:
    """Join the group of this process for the time of the block."""
    group: ProcessGroup
    group = TorchProcessGroup(device, timeout) if world_size() > 1 else SingleProcess()
    try:
        yield group
    finally:
        group.close()


def local_device(name: str) -> torch.device:
    """Return the device of this process; each process of a machine gets a GPU of its own."""
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device(name)
