"""The state of a biLM between sentences: the last output and the cells of each LSTM layer.

A state is an argument and a result of the engine, never hidden in it.
Shape letters: L layers, 2 directions, B rows, P width, H cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.weights import FloatArray
from elmokit.errors import WeightsError


@dataclass(frozen=True)
class State:
    """The LSTM state of a batch, with one row per sentence."""

    hidden: FloatArray
    """Last output of each layer before the skip connection, (L, 2, B, P)."""
    cell: FloatArray
    """Cells of each layer, (L, 2, B, H)."""

    @classmethod
    def zeros(cls, config: BiLMConfig, rows: int = 1) -> State:
        """Return the all-zero state, in which nothing has been read."""
        lstm = config.lstm
        return cls(
            np.zeros((lstm.layers, 2, rows, lstm.width), np.float32),
            np.zeros((lstm.layers, 2, rows, lstm.cells), np.float32),
        )

    @property
    def rows(self) -> int:
        """Number of rows B."""
        return int(self.hidden.shape[2])

    @property
    def is_zero(self) -> bool:
        """Whether nothing has been read: all values are zero."""
        return not self.hidden.any() and not self.cell.any()

    def select(self, rows: list[int]) -> State:
        """Return these rows, in this order."""
        if self.rows > 1 and self.hidden.strides[2] == 0:  # they are all the same
            return self.repeat(len(rows))
        return State(self.hidden[:, :, rows], self.cell[:, :, rows])

    def repeat(self, rows: int) -> State:
        """Return the first row this many times, without copies of it; it cannot be written to."""
        return State(*(_repeated(array, rows) for array in (self.hidden, self.cell)))

    def extend(self, rows: int) -> State:
        """Return the state with at least this many rows; new rows are all zeros."""
        more = ((0, 0), (0, 0), (0, max(0, rows - self.rows)), (0, 0))
        return State(np.pad(self.hidden, more), np.pad(self.cell, more))

    def replace(self, rows: list[int], new: State) -> State:
        """Return a copy in which these rows are those of `new`."""
        hidden, cell = self.hidden.copy(), self.cell.copy()
        hidden[:, :, rows], cell[:, :, rows] = new.hidden, new.cell
        return State(hidden, cell)

    def check(self, config: BiLMConfig) -> None:
        """Raise `WeightsError` unless this is a settled state, one row, of this architecture."""
        lstm = config.lstm
        for name, size in (("hidden", lstm.width), ("cell", lstm.cells)):
            array, shape = getattr(self, name), (lstm.layers, 2, 1, size)
            if array.shape != shape or array.dtype != np.float32:
                raise WeightsError(
                    f"{name} of the settled state is {array.dtype} {array.shape}; "
                    f"expected float32 {shape}"
                )
            if not np.isfinite(array).all():
                raise WeightsError(f"{name} of the settled state has NaN or infinite values")


def _repeated(array: FloatArray, rows: int) -> FloatArray:
    """Return a view (L, 2, rows, …) of the first row."""
    first = array[:, :, :1]
    return np.broadcast_to(first, (*first.shape[:2], rows, first.shape[3]))
