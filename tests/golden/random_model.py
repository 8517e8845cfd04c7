"""Write random models of any ELMo architecture, as options.json + weights.hdf5.

The weights are scaled so that a network behaves like a trained one where it matters for a
comparison: activations stay of order one in every layer, gates are neither closed nor open, and the
cell and projection clips of the published models are reached now and then. The same options and
seed give the same content.

Does not use elmokit, on purpose: the golden files must not depend on its writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Options = dict[str, Any]


def options(
    cells: int,
    projection: int,
    highways: int | None,
    filters: Sequence[tuple[int, int]],
    *,
    layers: int = 2,
    character_dim: int = 16,
    activation: str = "relu",
    cell_clip: float | None = 3.0,
    projection_clip: float | None = 3.0,
    skip: bool = True,
    characters: int = 50,
) -> Options:
    """Return the content of an options.json."""
    return {
        "lstm": {
            "use_skip_connections": skip,
            "projection_dim": projection,
            "cell_clip": cell_clip,
            "proj_clip": projection_clip,
            "dim": cells,
            "n_layers": layers,
        },
        "char_cnn": {
            "activation": activation,
            "filters": [list(pair) for pair in filters],
            "n_highway": highways,
            "embedding": {"dim": character_dim},
            "n_characters": 262,
            "max_characters_per_token": characters,
        },
    }


def arrays(options: Options, seed: int = 0) -> Iterator[tuple[str, Array]]:
    """Yield the names and arrays of weights.hdf5, drawn in the order of the file."""
    rng = np.random.default_rng(seed)
    cnn, lstm = options["char_cnn"], options["lstm"]
    cells, width = lstm["dim"], lstm["projection_dim"]
    n_filters = sum(n for _, n in cnn["filters"])
    character_dim = cnn["embedding"]["dim"]

    def normal(*shape: int, std: float, mean: float = 0.0) -> Array:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(std) + np.float32(mean)

    # 261 rows: the row of the mask, id 0 at inference, is added when the file is loaded.
    yield "char_embed", normal(261, character_dim, std=0.6)
    for i, (w, n) in enumerate(cnn["filters"]):
        yield f"CNN/W_cnn_{i}", normal(1, w, character_dim, n, std=1 / sqrt(w * character_dim))
        yield f"CNN/b_cnn_{i}", normal(n, std=0.1)
    for k in range(cnn.get("n_highway") or 0):
        for gate, bias in (("carry", -1.0), ("transform", 0.0)):
            matrix = normal(n_filters, n_filters, std=sqrt(2 / n_filters))
            yield f"CNN_high_{k}/W_{gate}", matrix
            yield f"CNN_high_{k}/b_{gate}", normal(n_filters, std=0.2, mean=bias)
    if n_filters != width:
        yield "CNN_proj/W_proj", normal(n_filters, width, std=1.5 / sqrt(n_filters))
        yield "CNN_proj/b_proj", normal(width, std=0.1)
    for direction in range(2):
        for layer in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            yield f"{cell}/W_0", normal(2 * width, 4 * cells, std=1.5 / sqrt(2 * width))
            yield f"{cell}/B", normal(4 * cells, std=0.3)
            if cells != width:
                yield f"{cell}/W_P_0", normal(cells, width, std=2.5 / sqrt(cells))


def write(directory: Path, options: Options, seed: int = 0) -> None:
    """Write options.json and weights.hdf5 into a directory, which is created if necessary."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "options.json").write_text(json.dumps(options, indent=2) + "\n")
    # In the file format of HDF5 1.8, groups take a tenth of the space of the older default.
    with h5py.File(directory / "weights.hdf5", "w", libver=("v108", "v108")) as file:
        for name, array in arrays(options, seed):
            file[name] = array
