"""The compiled kernel: `src/native/bind.cpp`. Shape letters as in `engine/reference.py`."""

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float32]

def instruction_sets(*, int8: bool) -> list[str]:
    """The instruction sets that this machine can run, the fastest first."""

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
