"""The compiled kernel: `src/native/bind.cpp`. Shape letters as in `engine/reference.py`."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float32]

def instruction_sets(*, int8: bool) -> list[str]:
    """The instruction sets that this machine can run, the fastest first."""

PADDED_FILTERS: int
"""Arrays of padded filters have a multiple of so many for each width."""

def windows(
    isa: str,
    filters: Sequence[tuple[int, int]],
    max_characters: int,
    tanh: bool,
    table: _Floats,
    biases: _Floats,
    ids: npt.NDArray[np.int16],
    lengths: npt.NDArray[np.int64],
    outputs: _Floats,
    places: npt.NDArray[np.int16],
    /,
) -> None:
    """Words to filter outputs and the places of the largest windows, which are written."""

def windows_backward(
    isa: str,
    filters: Sequence[tuple[int, int]],
    max_characters: int,
    tanh: bool,
    ids: npt.NDArray[np.int16],
    lengths: npt.NDArray[np.int64],
    outputs: _Floats,
    places: npt.NDArray[np.int16],
    gradients: _Floats,
    biases: _Floats,
    table: _Floats,
    /,
) -> None:
    """Adds the gradients of the outputs to those of the biases and of the table."""

def lstm_forward(
    isa: str,
    alive: npt.NDArray[np.int64],
    recurrent: _Floats,
    projection: _Floats,
    cell_clip: float,
    projection_clip: float,
    hidden: _Floats,
    cell: _Floats,
    gates: _Floats,
    cells: _Floats,
    outputs: _Floats,
    said: _Floats,
    /,
) -> None:
    """Reads a packed batch; the last four are written, `learn_lstm.h` says with what."""

def lstm_backward(
    isa: str,
    alive: npt.NDArray[np.int64],
    recurrent: _Floats,
    projection: _Floats,
    cell_clip: float,
    projection_clip: float,
    cell: _Floats,
    gates: _Floats,
    cells: _Floats,
    said: _Floats,
    d_said: _Floats,
    d_hidden: _Floats,
    d_cell: _Floats,
    d_gates: _Floats,
    d_projected: _Floats,
    /,
) -> None:
    """The way back; the last four are written."""

SOFTMAX_COLUMNS: int
"""A block of logits has a multiple of so many columns."""

def softmax(
    isa: str,
    candidates: int,
    logits: _Floats,
    bias: _Floats,
    hidden: _Floats,
    weights: _Floats,
    targets: npt.NDArray[np.int64],
    target_bias: _Floats,
    hidden_gradient: _Floats | None = None,
    weight_gradient: _Floats | None = None,
    bias_gradient: _Floats | None = None,
    /,
) -> float:
    """The sum of the losses of a block of rows; `kernels.h` says what becomes of the arrays."""

class Network:
    """A frozen biLM. Arrays are C-contiguous; results are written into the arrays passed."""

    def __init__(
        self,
        *,
        filters: list[tuple[int, int]],
        characters: int,
        embedding_dim: int,
        max_characters: int,
        tanh: bool,
        highways: int,
        character_projection: bool,
        cells: int,
        width: int,
        layers: int,
        projection: bool,
        skip: bool,
        cell_clip: float,
        projection_clip: float,
        int8: bool,
        instruction_set: str,
        threads: int,
    ) -> None: ...
    def load_embedding(self, embedding: _Floats, /) -> None: ...
    def load_filters(self, index: int, weight: _Floats, bias: _Floats, /) -> None: ...
    def load_highway(
        self,
        index: int,
        carry: _Floats,
        carry_bias: _Floats,
        transform: _Floats,
        transform_bias: _Floats,
        /,
    ) -> None: ...
    def load_projection(self, weight: _Floats, bias: _Floats, /) -> None: ...
    def load_lstm(
        self,
        layer: int,
        side: int,
        input: _Floats,
        recurrent: _Floats,
        bias: _Floats,
        projection: _Floats | None = None,
        /,
    ) -> None: ...
    def word_vectors(
        self,
        ids_UC: npt.NDArray[np.int16],
        lengths_U: npt.NDArray[np.int64],
        out_UP: _Floats,
        /,
    ) -> None: ...
    def contextualize(
        self,
        words_NP: _Floats,
        alive_T: npt.NDArray[np.int64],
        mirror_N: npt.NDArray[np.int64],
        hidden: _Floats,
        cell: _Floats,
        layers_LND: _Floats,
        /,
    ) -> None: ...
