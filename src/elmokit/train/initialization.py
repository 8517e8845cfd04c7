"""Initial weights of a biLM.

Characters and highways are drawn in the spirit of bilm-tf: small filters, and highways that carry
at first. The softmax starts with the frequencies of the words, so that the network has only the
context to learn.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.weights import SOFTMAX, FloatArray, expected_shapes

CARRY_BIAS = -2.0
"""Bias of the highways' carry gates."""


def initial_weights(
    config: BiLMConfig, target_counts: npt.NDArray[np.int64], seed: int
) -> dict[str, FloatArray]:
    """Return initial arrays of the network and its softmax.

    Args:
        config: Architecture.
        target_counts: How often each word of the vocabulary is predicted in the training text.
        seed: Random seed.
    """
    rng = np.random.default_rng([seed, 0])
    weights = {name: _initial(rng, name, shape) for name, shape in expected_shapes(config).items()}
    return weights | initial_softmax(config, target_counts, rng)


def initial_softmax(
    config: BiLMConfig, target_counts: npt.NDArray[np.int64], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Return a softmax that predicts each word about as often as it occurs in any context."""
    shape = len(target_counts), config.lstm.width
    weight = rng.standard_normal(shape, dtype=np.float32) / np.float32(math.sqrt(shape[1]))
    frequencies = np.maximum(target_counts, 0.5) / target_counts.sum()
    return dict(zip(SOFTMAX, (weight, np.log(frequencies).astype(np.float32)), strict=True))


def _initial(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> FloatArray:
    if name.endswith("bias"):
        return np.full(shape, CARRY_BIAS if name.endswith("carry.bias") else 0.0, np.float32)
    if name == "characters.embedding":
        return rng.uniform(-1, 1, shape).astype(np.float32)
    if "convolution" in name:
        return rng.uniform(-0.05, 0.05, shape).astype(np.float32)
    fan_in = shape[0]
    if name.endswith(("input.weight", "recurrent.weight")):
        fan_in *= 2  # the two products are added
    return (rng.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)
