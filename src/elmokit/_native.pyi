"""The compiled kernel, built from `src/native/`. Shape letters as in `engine/reference.py`."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float32]

def instruction_sets(*, dtype: str) -> list[str]:
    """Return the instruction sets that this machine can run, the fastest first."""

def measure_products(*, instruction_set: str, dtype: str, threads: int, seconds: float) -> float:
    """Multiply and add in registers for some seconds; return the products per second."""

def measure_reads(*, instruction_set: str, bytes: int, threads: int, seconds: float) -> float:
    """Read an array that the threads share for some seconds; return the bytes per second."""

def plan(
    *, threads: int, sentences: int, step_products: int, step_bytes: int
) -> tuple[int, int, int]:
    """Return how a batch is divided: subteams, threads of each, and blocks of sentences."""

def inject_failure(*, worker: bool, after: int) -> None:
    """For tests: let one synchronization of threads raise MemoryError, after so many others.

    Args:
        worker: Fail in a worker thread, not in the calling one.
        after: Number of synchronizations before it; -1 for no failure.
    """

PADDED_FILTERS: int
"""The number of filters of each width is padded to a multiple of this."""

def convolution_forward(
    isa: str,
    filters: Sequence[tuple[int, int]],
    max_characters: int,
    tanh: bool,
    table: _Floats,
    biases: _Floats,
    ids: npt.NDArray[np.int16],
    lengths: npt.NDArray[np.int64],
    outputs: _Floats,
    positions: npt.NDArray[np.int16],
    /,
) -> None:
    """Write the filter outputs of words, and the positions of the largest windows."""

def convolution_backward(
    isa: str,
    filters: Sequence[tuple[int, int]],
    max_characters: int,
    tanh: bool,
    ids: npt.NDArray[np.int16],
    lengths: npt.NDArray[np.int64],
    outputs: _Floats,
    positions: npt.NDArray[np.int16],
    d_outputs: _Floats,
    d_biases: _Floats,
    d_table: _Floats,
    /,
) -> None:
    """Add the gradients of the biases and the table, given those of the outputs."""

def lstm_forward(
    isa: str,
    alive: npt.NDArray[np.int64],
    recurrent: _Floats,
    projection: _Floats,
    cell_clip: float,
    projection_clip: float,
    initial_hidden: _Floats,
    initial_cell: _Floats,
    gates: _Floats,
    cells: _Floats,
    cell_outputs: _Floats,
    outputs: _Floats,
    /,
) -> None:
    """Run a layer over a packed batch; writes the last four arrays, see `train_lstm.h`."""

def lstm_backward(
    isa: str,
    alive: npt.NDArray[np.int64],
    recurrent: _Floats,
    projection: _Floats,
    cell_clip: float,
    projection_clip: float,
    initial_cell: _Floats,
    gates: _Floats,
    cells: _Floats,
    outputs: _Floats,
    d_outputs: _Floats,
    d_hidden: _Floats,
    d_cell: _Floats,
    d_gates: _Floats,
    d_projected: _Floats,
    /,
) -> None:
    """Run the backward pass of a layer; writes the last four arrays, see `train_lstm.h`."""

INTEL_CPU: bool
"""Whether Intel made this CPU."""

def multiply(
    isa: str,
    a: _Floats,
    a_transposed: bool,
    b: _Floats,
    b_transposed: bool,
    bias: _Floats | None,
    out: _Floats,
    add: bool,
    /,
) -> None:
    """Write a·b + bias to out, or add it. A factor may be stored transposed."""

SOFTMAX_COLUMNS: int
"""The number of columns of a block of logits is a multiple of this."""

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
    """Return the sum of the losses of a block of rows; `kernels.h` describes the arrays."""

TILE_DEPTH: int
"""Columns of arrays of bfloat16 are padded to a multiple of this."""
TILE_MARGIN: int
"""Rows of padding below arrays of bfloat16."""

def tile_lstm_forward(
    isa: str,
    alive: npt.NDArray[np.int64],
    input: _Floats,
    recurrent: _Floats,
    bias: _Floats,
    projection: _Floats,
    cell_clip: float,
    projection_clip: float,
    inputs: _Floats,
    initial_hidden: _Floats,
    initial_cell: _Floats,
    gates: _Floats,
    cells: _Floats,
    factors: npt.NDArray[np.int16],
    cell_outputs: npt.NDArray[np.int16],
    outputs: _Floats,
    /,
) -> None:
    """Run a layer in bfloat16 over a packed batch; writes the last five arrays: `train_tiles.h`."""

def tile_lstm_backward(
    isa: str,
    alive: npt.NDArray[np.int64],
    input: _Floats,
    recurrent: _Floats,
    bias: _Floats,
    projection: _Floats,
    cell_clip: float,
    projection_clip: float,
    initial_cell: _Floats,
    gates: _Floats,
    cells: _Floats,
    factors: npt.NDArray[np.int16],
    cell_outputs: npt.NDArray[np.int16],
    outputs: _Floats,
    d_outputs: _Floats,
    d_inputs: _Floats | None,
    d_hidden: _Floats,
    d_cell: _Floats,
    d_input: _Floats,
    d_recurrent: _Floats,
    d_bias: _Floats,
    d_projection: _Floats,
    /,
) -> None:
    """Run the backward pass of such a layer; writes the last seven arrays."""

def tile_softmax(
    isa: str,
    candidates: int,
    bias: _Floats,
    hidden: _Floats,
    weights: _Floats,
    targets: npt.NDArray[np.int64],
    target_bias: _Floats,
    hidden_gradient: _Floats | None,
    weight_gradient: _Floats | None,
    bias_gradient: _Floats | None,
    /,
) -> float:
    """Return the sum of the losses of all rows, with products of bfloat16: `train_tiles.h`."""

def tile_affine_forward(
    isa: str, x: _Floats, weight: _Floats, bias: _Floats, y: _Floats, /
) -> None:
    """Write x·W + bias to y, with products of bfloat16."""

def tile_affine_backward(
    isa: str,
    x: _Floats,
    weight: _Floats,
    d_y: _Floats,
    d_x: _Floats | None,
    d_weight: _Floats | None,
    d_bias: _Floats | None,
    /,
) -> None:
    """Write the gradients of such a map."""

class Network:
    """A frozen biLM. Takes C-contiguous arrays, and writes results into the arrays passed.

    Arrays of another type, shape or order are refused, as are sizes and indices out of range.
    """

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
        dtype: str,
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
        direction: int,
        input: _Floats,
        recurrent: _Floats,
        bias: _Floats,
        projection: _Floats | None = None,
        /,
    ) -> None: ...
    def buffer_bytes(self) -> int: ...
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
