"""The numbers that a biLM begins with, before it has read anything.

Characters and highways as bilm-tf draws them in spirit: small filters, highways that carry at
first; the softmax says how often each word occurs, so that the network has only context to learn.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.weights import SOFTMAX, FloatArray, expected_shapes

CARRY_BIAS = -2.0


def initial_weights(
    config: BiLMConfig, target_counts: npt.NDArray[np.int64], seed: int
) -> dict[str, FloatArray]:
    """Every array of the network, and a softmax over words that are predicted so often."""
    source = np.random.default_rng([seed, 0])
    weights = {
        name: _initial(source, name, shape) for name, shape in expected_shapes(config).items()
    }
    return weights | initial_softmax(config, target_counts, source)


def initial_softmax(
    config: BiLMConfig, target_counts: npt.NDArray[np.int64], source: np.random.Generator
) -> dict[str, FloatArray]:
    """Says each word as often as it is to be predicted, whatever the context."""
    shape = len(target_counts), config.lstm.width
    weight = source.standard_normal(shape, dtype=np.float32) / np.float32(math.sqrt(shape[1]))
    often = np.maximum(target_counts, 0.5) / target_counts.sum()
    return dict(zip(SOFTMAX, (weight, np.log(often).astype(np.float32)), strict=True))


def _initial(source: np.random.Generator, name: str, shape: tuple[int, ...]) -> FloatArray:
    if name.endswith("bias"):
        return np.full(shape, CARRY_BIAS if name.endswith("carry.bias") else 0.0, np.float32)
    if name == "characters.embedding":
        return source.uniform(-1, 1, shape).astype(np.float32)
    if "convolution" in name:
        return source.uniform(-0.05, 0.05, shape).astype(np.float32)
    inputs = shape[0]
    if name.endswith(("input.weight", "recurrent.weight")):
        inputs *= 2  # the two add up
    return (source.standard_normal(shape) / math.sqrt(inputs)).astype(np.float32)
