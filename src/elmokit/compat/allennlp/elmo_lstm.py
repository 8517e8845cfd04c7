"""AllenNLP's `ElmoLstm`: the two stacks of LSTMs, with the state that is carried from call to call.

It runs in PyTorch on the module's device. Within an unchanged `Elmo` the fast engine computes the
same; this module serves those who call it by itself, or build a model of their own with it.

Shape letters: B sentences, T positions, N positions of all sentences, P width, D = 2P, L layers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.weights import expected_shapes
from elmokit.compat.allennlp.character_encoder import FixedLinear
from elmokit.compat.allennlp.files import WEIGHTS, PathOrURL, local_file
from elmokit.compat.allennlp.lstm_cell import LstmCellWithProjection
from elmokit.compat.allennlp.names import lstm_from_allennlp, lstm_to_allennlp
from elmokit.errors import ConfigError, InputError
from elmokit.formats.allennlp import read_lstm_weights
from elmokit.nn import network
from elmokit.nn.batch import Batch
from elmokit.nn.state import TensorState


class ElmoLstm(torch.nn.Module):
    """The LSTMs with AllenNLP's parameters, and the state that is carried from call to call.

    Existing code sets `stateful = False` or calls `reset_states()` to discard the state.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        cell_size: int,
        num_layers: int,
        requires_grad: bool = False,
        recurrent_dropout_probability: float = 0.0,
        memory_cell_clip_value: float | None = None,
        state_projection_clip_value: float | None = None,
    ) -> None:
        """Create LSTMs with random weights; the arguments are those of AllenNLP.

        `load_weights` reads those of a model. `recurrent_dropout_probability` has to be 0, and
        `input_size` has to equal `hidden_size`, as in every published model.
        """
        super().__init__()
        if input_size != hidden_size:
            raise ConfigError(
                f"input_size is {input_size} and hidden_size {hidden_size}; expected equal sizes"
            )
        if recurrent_dropout_probability:
            raise ConfigError(
                f"recurrent_dropout_probability is {recurrent_dropout_probability}; expected 0. To "
                "train a biLM, use elmokit.train"
            )
        lstm = LSTMConfig(
            cells=cell_size,
            width=hidden_size,
            layers=num_layers,
            cell_clip=memory_cell_clip_value,
            projection_clip=state_projection_clip_value,
        )
        # The character network is not part of this module; the smallest one completes the config.
        config = BiLMConfig(char_cnn=CharCNNConfig(filters=((1, hidden_size),)), lstm=lstm)
        shapes = expected_shapes(config)
        random = {name: 0.1 * torch.randn(*shape) for name, shape in shapes.items()}
        self._take(config, random, requires_grad)

    @classmethod
    def from_weights(
        cls, config: BiLMConfig, ours: Mapping[str, Tensor], requires_grad: bool
    ) -> ElmoLstm:
        """Return the LSTMs of a model, given its canonical weights."""
        lstm = cls.__new__(cls)
        torch.nn.Module.__init__(lstm)
        lstm._take(config, ours, requires_grad)
        return lstm

    def _take(self, config: BiLMConfig, ours: Mapping[str, Tensor], requires_grad: bool) -> None:
        self._config = config
        self.input_size = self.hidden_size = config.lstm.width
        self.cell_size = config.lstm.cells
        self.num_layers = config.lstm.layers
        self.requires_grad = requires_grad
        self.stateful = True
        self._states: tuple[Tensor, Tensor] | None = None
        """(L, rows, 2P) and (L, rows, 2H): both directions concatenated, as in AllenNLP."""
        theirs = {
            name: torch.nn.Parameter(tensor, requires_grad=requires_grad)
            for name, tensor in lstm_to_allennlp(config.lstm, ours).items()
        }
        for name in theirs:
            cell, part, kind = name.split(".")
            if cell not in self._modules:
                self.add_module(cell, _empty_cell(config.lstm, cell.startswith("forward")))
            if kind == "weight":
                linear = FixedLinear(theirs[name], theirs.get(f"{cell}.{part}.bias"))
                setattr(self.get_submodule(cell), part, linear)

    @property
    def forward_layers(self) -> list[LstmCellWithProjection]:
        """The cells of the forward LSTM, one per layer."""
        return [getattr(self, f"forward_layer_{i}") for i in range(self.num_layers)]

    @property
    def backward_layers(self) -> list[LstmCellWithProjection]:
        """The cells of the backward LSTM, one per layer."""
        return [getattr(self, f"backward_layer_{i}") for i in range(self.num_layers)]

    def load_weights(self, weight_file: PathOrURL) -> None:
        """Read the weights of the LSTMs from an HDF5 file of bilm-tf or AllenNLP."""
        arrays = read_lstm_weights(local_file(weight_file, WEIGHTS), self._config)
        ours = {name: torch.from_numpy(np.array(a, np.float32)) for name, a in arrays.items()}
        with torch.no_grad():
            for name, tensor in lstm_to_allennlp(self._config.lstm, ours).items():
                self.get_parameter(name).copy_(tensor)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs (L, B, T, D) of all layers, with zeros where there is no word.

        Args:
            inputs: Word vectors (B, T, P), usually with those of the sentence marks.
            mask: Where there is a word, (B, T); words first, then padding.
        """
        mask = mask.bool()
        lengths_B = mask.sum(dim=1)
        if (mask != (torch.arange(mask.shape[1], device=mask.device) < lengths_B[:, None])).any():
            raise InputError("mask has a word after an empty position; expected the words first")
        rows = lengths_B.nonzero().flatten().cpu()
        # A `Batch` counts words without the two marks; nothing else here depends on them.
        lengths = tuple((lengths_B.cpu()[rows] - 2).tolist())
        count = int(lengths_B.sum())
        batch = Batch(
            np.zeros((0, 0), np.int16),
            np.zeros(0, np.int64),
            np.arange(count),
            lengths,
            mask.shape[1] - 2,
        )
        before = self.begin(len(mask)).to(inputs)
        weights = lstm_from_allennlp(self._config.lstm, dict(self.named_parameters()))
        layers_LND, after = network.contextualize(
            self._config, weights, inputs[mask], batch, before.select(rows)
        )
        pairs = zip(before, after, strict=True)
        self.end(TensorState(*(old.index_copy(2, rows.to(new.device), new) for old, new in pairs)))
        outputs_LBTD = batch.pad(layers_LND[1:], marks=True)
        if len(rows) == len(mask):
            return outputs_LBTD
        padded = outputs_LBTD.new_zeros(self.num_layers, *mask.shape, self._config.dim)
        return padded.index_copy(1, rows.to(padded.device), outputs_LBTD)

    # -- the state -----------------------------------------------------------------------------

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Set the states to zero: of all rows, or of those where the mask (rows,) is true."""
        if mask is None:
            self._states = None
            return
        rows = 0 if self._states is None else self._states[0].shape[1]
        if self._states is None or mask.shape != (rows,):
            raise InputError(f"mask has the shape {tuple(mask.shape)}; expected ({rows},)")
        reset = mask.bool().view(1, -1, 1)
        hidden, cell = (part.masked_fill(reset, 0.0) for part in self._states)
        self._states = hidden, cell

    def begin(self, rows: int) -> TensorState:
        """Return the state that each row of a batch continues from; new rows are all zeros."""
        if self._states is None or not self.stateful:
            return TensorState.zeros(self._config, rows)
        hidden, cell = (
            torch.stack(part[:, :rows].chunk(2, dim=-1), dim=1) for part in self._states
        )
        return _extend(TensorState(hidden, cell), rows)

    def end(self, after: TensorState) -> None:
        """Store the states after a batch; further rows keep theirs."""
        rows = after.rows
        new = [torch.cat(part.detach().unbind(1), dim=-1) for part in after]
        if self._states is not None:
            pairs = zip(new, self._states, strict=True)
            new = [torch.cat([part, old[:, rows:].to(part)], dim=1) for part, old in pairs]
        self._states = new[0], new[1]


def _empty_cell(lstm: LSTMConfig, go_forward: bool) -> LstmCellWithProjection:
    """Return a cell whose linear layers are still to be set."""
    with torch.device("meta"):
        cell = LstmCellWithProjection(
            lstm.width,
            lstm.width,
            lstm.cells,
            go_forward,
            memory_cell_clip_value=lstm.cell_clip,
            state_projection_clip_value=lstm.projection_clip,
        )
    if not lstm.projection:
        cell.state_projection = None
    return cell


def _extend(state: TensorState, rows: int) -> TensorState:
    """Return the state with at least this many rows; new ones are all zeros."""
    more = max(0, rows - state.rows)
    pad = torch.nn.functional.pad
    return TensorState(*(pad(part, (0, 0, 0, more)) for part in state))
