"""Models of random numbers: for measuring speed and for tests, where only the shape matters.

The numbers are scaled so that a network behaves like a trained one: activations of order one
through every layer, gates neither shut nor open, clips reached now and then.
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
    """A model of this architecture, or of a size by its name."""
    if isinstance(config, str):
        if config not in SIZES:
            raise InputError(f"size is {config!r}; expected one of {', '.join(SIZES)}")
        config = SIZES[config]
    source = np.random.default_rng(seed)
    shapes = expected_shapes(config)
    return BiLM(config, {name: _draw(source, name, shape) for name, shape in shapes.items()})


def _draw(source: np.random.Generator, name: str, shape: tuple[int, ...]) -> FloatArray:
    inputs = math.prod(shape[:-1])
    scale, mean = _scale(name, inputs)
    drawn = source.standard_normal(shape, dtype=np.float32)
    drawn *= np.float32(scale)
    drawn += np.float32(mean)
    return drawn


def _scale(name: str, inputs: int) -> tuple[float, float]:
    """Standard deviation and mean of an array."""
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
