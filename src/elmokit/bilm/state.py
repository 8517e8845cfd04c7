"""The memory of a biLM between sentences: what each LSTM layer said and holds, row by row.

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
    """One row for each sentence of a batch."""

    hidden: FloatArray
    """(L, 2, B, P): the last output of each layer, before the skip connection."""
    cell: FloatArray
    """(L, 2, B, H): the memory of each layer."""

    @classmethod
    def zeros(cls, config: BiLMConfig, rows: int = 1) -> State:
        """Nothing read yet."""
        lstm = config.lstm
        return cls(
            np.zeros((lstm.layers, 2, rows, lstm.width), np.float32),
            np.zeros((lstm.layers, 2, rows, lstm.cells), np.float32),
        )

    @property
    def rows(self) -> int:
        """B."""
        return int(self.hidden.shape[2])

    def select(self, rows: list[int]) -> State:
        """These rows, in this order."""
        return State(self.hidden[:, :, rows], self.cell[:, :, rows])

    def repeat(self, rows: int) -> State:
        """The single row, for every sentence of a batch."""
        return self.select([0] * rows)

    def extend(self, rows: int) -> State:
        """At least this many rows; new ones have read nothing."""
        more = ((0, 0), (0, 0), (0, max(0, rows - self.rows)), (0, 0))
        return State(np.pad(self.hidden, more), np.pad(self.cell, more))

    def replace(self, rows: list[int], new: State) -> State:
        """A copy in which these rows are those of `new`."""
        hidden, cell = self.hidden.copy(), self.cell.copy()
        hidden[:, :, rows], cell[:, :, rows] = new.hidden, new.cell
        return State(hidden, cell)

    def check(self, config: BiLMConfig) -> None:
        """Raise `WeightsError` unless the state belongs to this architecture."""
        expected = State.zeros(config, self.rows if self.hidden.ndim == 4 else 1)
        for name in ("hidden", "cell"):
            found, wanted = getattr(self, name), getattr(expected, name)
            if found.shape != wanted.shape or found.dtype != wanted.dtype:
                raise WeightsError(
                    f"the settled state's {name} is {found.dtype} {found.shape}; "
                    f"this architecture asks for {wanted.dtype} {wanted.shape}"
                )
            if not np.isfinite(found).all():
                raise WeightsError(f"the settled state's {name} holds NaN or infinite numbers")
