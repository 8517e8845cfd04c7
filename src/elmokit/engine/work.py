"""How much work a batch is: floating-point operations, and bytes of weights.

Counted from the architecture alone. Only matrix products count: what else there is (sums of the
characters' table, gates, copies, Python) takes time too, so that no implementation reaches the
limits that follow. Every weight is read at least once for each product that needs it: by the
character network once for new words, by the input products of a layer once per batch, and by its
recurrent products once per step.

Shape letters: N words of a batch, sentence marks included, P width, H cells, F filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.bilm.config import BiLMConfig
from elmokit.engine.batching import pack

WEIGHT_BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}
"""Size of a stored weight by dtype."""


class Work(NamedTuple):
    """A matrix product, or several equal ones that run one after another."""

    part: str
    """`"characters"`, `"inputs"` or `"steps"`."""
    flops: int
    """Operations of each: two per product, since products are added up."""
    bytes: int
    """Size of the weights that each reads."""
    times: int
    """Number of such products."""


def character_weights(config: BiLMConfig) -> int:
    """Return the number of weights that the vector of a new word is multiplied with."""
    cnn = config.char_cnn
    highways = cnn.highways * 2 * cnn.n_filters**2
    return highways + (cnn.n_filters * config.lstm.width if cnn.projection else 0)


def input_weights(config: BiLMConfig) -> int:
    """Return the number of input weights of an LSTM layer in one direction: P · 4H."""
    return config.lstm.width * 4 * config.lstm.cells


def step_weights(config: BiLMConfig) -> int:
    """Return the number of weights of a step of a layer in one direction: P · 4H + H · P."""
    lstm = config.lstm
    return lstm.width * 4 * lstm.cells + (lstm.cells * lstm.width if lstm.projection else 0)


def count_work(
    config: BiLMConfig, lengths: Sequence[int], new_words: int, dtype: str = "float32"
) -> Iterator[Work]:
    """Yield the matrix products of one batch.

    Args:
        config: Architecture of the model.
        lengths: Number of words of each sentence, with its two marks.
        new_words: Number of distinct words whose vectors are not cached.
        dtype: How the weights are stored.
    """
    size = WEIGHT_BYTES[dtype]
    weights = character_weights(config)
    if new_words and weights:
        yield Work("characters", 2 * new_words * weights, weights * size, 1)
    if not lengths:
        return
    passes = 2 * config.lstm.layers
    weights = input_weights(config)
    yield Work("inputs", 2 * sum(lengths) * weights, weights * size, passes)
    weights = step_weights(config)
    for alive, steps in zip(*np.unique(pack(lengths).alive, return_counts=True), strict=True):
        yield Work("steps", 2 * int(alive) * weights, weights * size, passes * int(steps))
