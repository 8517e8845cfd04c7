"""The memory of a biLM between sentences, as tensors: `bilm/state.py` with gradients and devices.

An argument and a result of the network, never hidden in it.
Shape letters: L layers, 2 directions, B rows, P width, H cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.state import State
from elmokit.errors import InputError


class TensorState(NamedTuple):
    """One row for each sentence of a batch."""

    hidden: Tensor
    """(L, 2, B, P): the last output of each layer, before the skip connection."""
    cell: Tensor
    """(L, 2, B, H): the memory of each layer."""

    @classmethod
    def zeros(cls, config: BiLMConfig, rows: int, **how: Any) -> TensorState:
        """Nothing read yet; `how` is the dtype and device of torch's `zeros`."""
        lstm = config.lstm
        return cls(
            torch.zeros((lstm.layers, 2, rows, lstm.width), **how),
            torch.zeros((lstm.layers, 2, rows, lstm.cells), **how),
        )

    @classmethod
    def of(cls, state: State) -> TensorState:
        """A copy of the engine's."""
        return cls(torch.from_numpy(state.hidden.copy()), torch.from_numpy(state.cell.copy()))

    def numpy(self) -> State:
        """A state for the engine: float32, on the CPU, without gradients."""
        hidden, cell = (
            np.ascontiguousarray(part.detach().to("cpu", torch.float32).numpy()) for part in self
        )
        return State(hidden, cell)

    @property
    def rows(self) -> int:
        """B."""
        return int(self.hidden.shape[2])

    def select(self, rows: Tensor) -> TensorState:
        """These rows, in this order."""
        return TensorState(*(part.index_select(2, rows.to(part.device)) for part in self))

    def repeat(self, rows: int) -> TensorState:
        """The single row, for every sentence of a batch."""
        return TensorState(*(part.expand(-1, -1, rows, -1) for part in self))

    def detach(self) -> TensorState:
        """Without gradients: where back-propagation through time stops."""
        return TensorState(*(part.detach() for part in self))

    def to(self, like: Tensor) -> TensorState:
        """In the dtype and on the device of a tensor."""
        return TensorState(*(part.to(like) for part in self))

    def check(self, config: BiLMConfig, rows: int) -> None:
        """Raise `InputError` unless it belongs to this architecture and has so many rows."""
        lstm = config.lstm
        for part, name, width in zip(self, self._fields, (lstm.width, lstm.cells), strict=True):
            wanted = (lstm.layers, 2, rows, width)
            if part.shape != wanted:
                raise InputError(
                    f"the state's {name} has the shape {tuple(part.shape)}; "
                    f"{rows} sentences and this architecture ask for {wanted}"
                )
