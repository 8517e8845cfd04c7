"""The LSTM state of a biLM as tensors: `bilm/state.py` with gradients and devices.

The state is an argument and a result of the network, never hidden in it.
Shape letters: L layers, 2 directions, B rows (one per sentence), P width, H cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.state import State
from elmokit.errors import InputError


class TensorState(NamedTuple):
    """LSTM state of a batch, with one row per sentence."""

    hidden: Tensor
    """Last output of each layer, before the skip connection, (L, 2, B, P)."""
    cell: Tensor
    """Cell values of each layer, (L, 2, B, H)."""

    @classmethod
    def zeros(
        cls,
        config: BiLMConfig,
        rows: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> TensorState:
        """Return a state of zeros: nothing has been read yet.

        Args:
            config: Architecture that the state belongs to.
            rows: Number of sentences.
            dtype: Type of the tensors; torch's default if None.
            device: Device of the tensors; torch's default if None.
        """
        lstm = config.lstm
        return cls(
            torch.zeros((lstm.layers, 2, rows, lstm.width), dtype=dtype, device=device),
            torch.zeros((lstm.layers, 2, rows, lstm.cells), dtype=dtype, device=device),
        )

    @classmethod
    def from_state(cls, state: State) -> TensorState:
        """Copy a state of the engine into tensors."""
        return cls(torch.from_numpy(state.hidden.copy()), torch.from_numpy(state.cell.copy()))

    def numpy(self) -> State:
        """Return a state for the engine: float32, on the CPU, without gradients."""
        hidden, cell = (
            np.ascontiguousarray(part.detach().to("cpu", torch.float32).numpy()) for part in self
        )
        return State(hidden, cell)

    @property
    def rows(self) -> int:
        """Number of sentences, B."""
        return int(self.hidden.shape[2])

    def select(self, rows: Tensor) -> TensorState:
        """Return the given rows, in the given order."""
        return TensorState(*(part.index_select(2, rows.to(part.device)) for part in self))

    def repeat(self, rows: int) -> TensorState:
        """Return a state whose rows all are the single row of this one."""
        return TensorState(*(part.expand(-1, -1, rows, -1) for part in self))

    def detach(self) -> TensorState:
        """Return the state without gradients: back-propagation through time stops here."""
        return TensorState(*(part.detach() for part in self))

    def to(self, like: Tensor) -> TensorState:
        """Return the state with the dtype and on the device of a tensor."""
        return TensorState(*(part.to(like) for part in self))

    def check(self, config: BiLMConfig, rows: int) -> None:
        """Raise `InputError` unless the state fits this architecture and number of rows."""
        lstm = config.lstm
        for part, name, width in zip(self, self._fields, (lstm.width, lstm.cells), strict=True):
            expected = (lstm.layers, 2, rows, width)
            if part.shape != expected:
                raise InputError(
                    f"the state's {name} has the shape {tuple(part.shape)}; expected {expected} "
                    f"for {rows} sentences and this architecture"
                )
