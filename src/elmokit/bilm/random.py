"""Models with random weights, for benchmarks and tests.

The weights are scaled so that the network behaves like a trained one: activations are of order one
in every layer, gates are neither closed nor open, and the clips are reached now and then.
"""

from __future__ import annotations

import math

import numpy as np

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.sizes import SIZES
from elmokit.bilm.weights import FloatArray, expected_shapes
from elmokit.errors import InputError


def random_bilm(config: BiLMConfig | str, seed: int = 0) -> BiLM:
    """Return a model with random weights.

    Args:
        config: Architecture of the model, or the name of one of `SIZES`.
        seed: Random seed.
    """
    if isinstance(config, str):
        if config not in SIZES:
            raise InputError(f"size is {config!r}; expected one of {', '.join(SIZES)}")
        config = SIZES[config]
    generator = np.random.default_rng(seed)
    shapes = expected_shapes(config)
    return BiLM(config, {name: _draw(generator, name, shape) for name, shape in shapes.items()})


def _draw(generator: np.random.Generator, name: str, shape: tuple[int, ...]) -> FloatArray:
    inputs = math.prod(shape[:-1])
    scale, mean = _scale(name, inputs)
    array = generator.standard_normal(shape, dtype=np.float32)
    array *= np.float32(scale)
    array += np.float32(mean)
    return array


def _scale(name: str, inputs: int) -> tuple[float, float]:
    """Return the standard deviation and the mean of an array."""
    if name == "characters.embedding":
        return 0.6, 0.0
    if name.endswith("carry.bias"):
        return 0.2, -1.0
    if name.endswith("bias"):
        return 0.3 if name.startswith(("forward", "backward")) else 0.1, 0.0
    if "convolution" in name:
        return 1 / math.sqrt(inputs), 0.0
    if "highway" in name:
        return math.sqrt(2 / inputs), 0.0
    if name.startswith("characters.projection"):
        return 1.5 / math.sqrt(inputs), 0.0
    if name.endswith("projection.weight"):
        return 2.5 / math.sqrt(inputs), 0.0
    return 1.5 / math.sqrt(2 * inputs), 0.0  # the input and recurrent halves add up
