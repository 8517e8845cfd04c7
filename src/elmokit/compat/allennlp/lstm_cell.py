"""AllenNLP's `LstmCellWithProjection`: the LSTM of one layer in one direction.

An `ElmoLstm` consists of these, but computes all of them at once; this module serves those who take
a cell out of it and run it by itself.

Shape letters: B sentences, T positions, I size of an input, P width, H cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

CellState = tuple[Tensor, Tensor]
"""Output (1, B, P) and memory (1, B, H) of a cell."""


class LstmCellWithProjection(torch.nn.Module):
    """An LSTM whose output is projected and clipped, with AllenNLP's parameters.

    Its parts are `input_linearity`, `state_linearity`, with the bias of both, and, unless the model
    has none, `state_projection`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        cell_size: int,
        go_forward: bool = True,
        recurrent_dropout_probability: float = 0.0,
        memory_cell_clip_value: float | None = None,
        state_projection_clip_value: float | None = None,
    ) -> None:
        """Create a cell with random weights; the arguments are those of AllenNLP."""
        super().__init__()
        self.input_size, self.hidden_size, self.cell_size = input_size, hidden_size, cell_size
        self.go_forward = go_forward
        self.recurrent_dropout_probability = recurrent_dropout_probability
        self.memory_cell_clip_value = memory_cell_clip_value
        self.state_projection_clip_value = state_projection_clip_value
        self.input_linearity: torch.nn.Module = torch.nn.Linear(input_size, 4 * cell_size, False)
        self.state_linearity: torch.nn.Module = torch.nn.Linear(hidden_size, 4 * cell_size)
        self.state_projection: torch.nn.Module | None = torch.nn.Linear(
            cell_size, hidden_size, False
        )

    def forward(
        self, inputs: Tensor, batch_lengths: Sequence[int], initial_state: CellState | None = None
    ) -> tuple[Tensor, CellState]:
        """Return the outputs (B, T, P), zeros behind the end of a sentence, and the last state.

        Args:
            inputs: Vectors (B, T, I).
            batch_lengths: Number of positions of each sentence; they need not be sorted.
            initial_state: State to start from; by default zeros.
        """
        rows, steps = inputs.shape[:2]
        lengths_B1 = torch.as_tensor(batch_lengths, device=inputs.device)[:, None]
        if initial_state is None:
            hidden = inputs.new_zeros(rows, self.hidden_size)
            memory = inputs.new_zeros(rows, self.cell_size)
        else:
            hidden, memory = (part.squeeze(0) for part in initial_state)
        kept_BP = self._dropout_mask(hidden)
        from_inputs = self.input_linearity(inputs)
        outputs = [torch.zeros_like(hidden)] * steps
        for t in range(steps) if self.go_forward else reversed(range(steps)):
            i, f, j, o = (from_inputs[:, t] + self.state_linearity(hidden)).chunk(4, dim=-1)
            new = torch.sigmoid(i) * torch.tanh(j) + torch.sigmoid(f) * memory
            new = _clip(new, self.memory_cell_clip_value)
            output = torch.sigmoid(o) * torch.tanh(new)
            if self.state_projection is not None:
                output = _clip(self.state_projection(output), self.state_projection_clip_value)
            if kept_BP is not None:
                output = output * kept_BP
            is_word = t < lengths_B1
            outputs[t] = torch.where(is_word, output, 0.0)
            hidden = torch.where(is_word, output, hidden)
            memory = torch.where(is_word, new, memory)
        stacked = (
            torch.stack(outputs, dim=1) if steps else hidden.new_zeros(rows, 0, self.hidden_size)
        )
        return stacked, (hidden[None], memory[None])

    def _dropout_mask(self, like: Tensor) -> Tensor | None:
        """Return the mask of recurrent dropout, the same for all positions; None for no dropout."""
        if not self.recurrent_dropout_probability or not self.training:
            return None
        return torch.nn.functional.dropout(
            torch.ones_like(like), self.recurrent_dropout_probability
        )


def _clip(values: Tensor, limit: float | None) -> Tensor:
    return values.clamp(-limit, limit) if limit else values
