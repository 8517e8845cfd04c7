"""Both directions of a biLM over text that it learns to predict.

A *reading* is a batch as a language model sees it: each direction has its own order of words and,
for each of them, the word that comes next in that order. Whole sentences and windows of a stream
are readings of the same kind. Knows nothing about softmaxes or where text comes from.

Shape letters: U distinct words, C characters, N words of a batch in one direction, T steps,
P width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.engine.batching import IntArray
from elmokit.nn.network import TensorWeights, read_direction, words_to_vectors
from elmokit.nn.state import TensorState


@dataclass(frozen=True)
class Reading:
    """A batch to learn from; rows are packed step by step, see `engine/batching.py`."""

    ids_UC: npt.NDArray[np.int16]
    """The characters of each distinct word."""
    characters_U: IntArray
    """How many of them are not padding."""
    index_2N: IntArray
    """For each direction and row, the word read there, as a row of the table."""
    targets_2N: IntArray
    """The word to predict there, by its number in the vocabulary."""
    alive: IntArray
    """(T,) how many sentences or lanes have a word at each step, never rising."""

    @property
    def words(self) -> int:
        """N."""
        return int(self.index_2N.shape[1])


def read_both(
    config: BiLMConfig,
    weights: TensorWeights,
    reading: Reading,
    start: TensorState,
    drop: Callable[[Tensor], Tensor] = lambda x: x,
) -> tuple[Tensor, TensorState]:
    """What the top layers say (2·N, P), the forward words first, and the state after.

    Rows of the state are ranks. `drop` is done to what a layer reads.
    """
    words_UP = words_to_vectors(config, weights, reading.ids_UC, reading.characters_U)
    tops: list[Tensor] = []
    after: list[Any] = []
    for side, index_N in enumerate(reading.index_2N):
        x_NP = words_UP.index_select(0, torch.from_numpy(index_N).to(words_UP.device))
        said, left = read_direction(config, weights, side, x_NP, reading.alive, start, drop)
        tops.append(said[-1])
        after += left
    rows = int(reading.alive[0])
    hidden, cell = (
        torch.stack(parts).view(2, config.lstm.layers, rows, -1).transpose(0, 1)
        for parts in zip(*after, strict=True)
    )
    return torch.cat(tops), TensorState(hidden, cell)
