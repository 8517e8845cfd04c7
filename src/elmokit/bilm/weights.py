"""The named arrays of a biLM in one canonical layout, and the check that they fit an architecture.

The values are exactly those of the published files: the four gates of an LSTM are concatenated in
the order i (input), j (candidate), f (forget), o (output), without the 1.0 that is added to the
forget gate at run time. Every matrix multiplies from the right: y = x · weight + bias.
A model with word embeddings adds words.embedding[word] · words.projection to what it computes from
the characters of a word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.errors import WeightsError

FloatArray = npt.NDArray[np.float32]
Weights = Mapping[str, npt.NDArray[Any]]
"""Arrays of floating-point numbers by name."""

DIRECTIONS = ("forward", "backward")
FORGET_BIAS = 1.0
"""Added to the forget gate at run time, as in TensorFlow's LSTM cell; not stored in model files."""
SOFTMAX = ("softmax.weight", "softmax.bias")
"""Names of the output layer, (V, P) and (V,), which published model files do not contain."""


def expected_shapes(config: BiLMConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every array that inference needs, from input to output."""
    cnn, lstm = config.char_cnn, config.lstm
    filters, width, gates = cnn.n_filters, lstm.width, 4 * lstm.cells
    shapes: dict[str, tuple[int, ...]] = {
        "characters.embedding": (cnn.characters, cnn.embedding_dim)
    }
    for i, (span, count) in enumerate(cnn.filters):
        shapes[f"characters.convolution.{i}.weight"] = (span, cnn.embedding_dim, count)
        shapes[f"characters.convolution.{i}.bias"] = (count,)
    for k in range(cnn.highways):
        for gate in ("carry", "transform"):
            shapes[f"characters.highway.{k}.{gate}.weight"] = (filters, filters)
            shapes[f"characters.highway.{k}.{gate}.bias"] = (filters,)
    if cnn.projection:
        shapes["characters.projection.weight"] = (filters, width)
        shapes["characters.projection.bias"] = (width,)
    if config.words is not None:
        shapes["words.embedding"] = (config.words.entries, config.words.dim)
        shapes["words.projection"] = (config.words.dim, width)
    for direction in DIRECTIONS:
        for layer in range(lstm.layers):
            shapes[f"{direction}.{layer}.input.weight"] = (width, gates)
            shapes[f"{direction}.{layer}.recurrent.weight"] = (width, gates)
            shapes[f"{direction}.{layer}.bias"] = (gates,)
            if lstm.projection:
                shapes[f"{direction}.{layer}.projection.weight"] = (lstm.cells, width)
    return shapes


def parameter_count(config: BiLMConfig) -> int:
    """Return the number of parameters of the network, without the softmax."""
    return sum(map(math.prod, expected_shapes(config).values()))


def check_weights(config: BiLMConfig, weights: Weights) -> None:
    """Raise `WeightsError` unless all arrays are present, of their shape, and finite floats."""
    shapes = expected_shapes(config)
    missing = [name for name in shapes if name not in weights]
    if missing:
        raise WeightsError(f"the weights lack {_listed(missing)}, which the architecture needs")
    unknown = [name for name in weights if name not in shapes and name not in SOFTMAX]
    if unknown:
        raise WeightsError(
            f"the weights contain {_listed(unknown)}, which the architecture does not have"
        )
    for name, shape in shapes.items():
        if weights[name].shape != shape:
            raise WeightsError(
                f"{name} has the shape {weights[name].shape}; the architecture needs {shape}"
            )
    _check_softmax(config, weights)
    for name, array in weights.items():
        if array.dtype.kind != "f":
            raise WeightsError(f"{name} is of type {array.dtype}; expected floating-point numbers")
        if not _is_finite(array):
            raise WeightsError(f"{name} has NaN or infinite values; the file is damaged")


def _is_finite(array: npt.NDArray[Any]) -> bool:
    """Return whether all values are finite; in pieces, since a softmax may have a billion."""
    flat = array.reshape(-1)
    return all(np.isfinite(flat[i : i + (1 << 20)]).all() for i in range(0, flat.size, 1 << 20))


def _check_softmax(config: BiLMConfig, weights: Weights) -> None:
    present = [name for name in SOFTMAX if name in weights]
    if not present:
        return
    if len(present) == 1:
        raise WeightsError(f"the weights have only {present[0]}; expected {' and '.join(SOFTMAX)}")
    rows, bias = weights[SOFTMAX[0]].shape, weights[SOFTMAX[1]].shape
    if len(rows) != 2 or rows[1] != config.lstm.width or bias != rows[:1]:
        raise WeightsError(
            f"softmax.weight has the shape {rows} and softmax.bias {bias}; "
            f"expected (V, {config.lstm.width}) and (V,)"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
