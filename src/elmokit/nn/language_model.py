"""Both directions of a biLM over text that it learns to predict.

An `LMBatch` holds, for each direction, the words in the order in which that direction reads them
and the word to predict after each. Batches of whole sentences and windows of a stream have the same
form. Knows nothing about softmaxes or where text comes from.

Shape letters: U distinct words, C characters, N words of a batch in one direction, T steps,
P width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.engine.batching import IntArray
from elmokit.engine.native import Products
from elmokit.nn.network import TensorWeights, character_vectors, run_direction, stack_states
from elmokit.nn.state import TensorState


@dataclass(frozen=True)
class LMBatch:
    """A batch for language modeling; its rows are packed step by step, see `engine/batching.py`."""

    ids_UC: npt.NDArray[np.int16]
    """Character ids of each distinct word."""
    characters_U: IntArray
    """Number of characters of each distinct word, without padding."""
    index_2N: IntArray
    """Word read at each row of each direction, as a row of `ids_UC`."""
    targets_2N: IntArray
    """Word to predict at each row of each direction, as a number of the vocabulary."""
    alive: IntArray
    """Number of sentences or lanes that have a word at each step, (T,); never increases."""

    @property
    def words(self) -> int:
        """Number of words that each direction reads, N."""
        return int(self.index_2N.shape[1])


def run_language_model(
    config: BiLMConfig,
    weights: TensorWeights,
    batch: LMBatch,
    start: TensorState,
    dropout: Callable[[Tensor], Tensor] = lambda x: x,
    products: Products = "float32",
) -> tuple[Tensor, TensorState]:
    """Return the top layer's outputs (2·N, P), forward words first, and the state after the batch.

    Args:
        config: Architecture of the network.
        weights: Weights by their canonical names.
        batch: Words to read.
        start: State before the batch; its rows are ranks of the packing.
        dropout: Applied to the input of every LSTM layer.
        products: How the factors of matrix products are rounded.
    """
    words_UP = character_vectors(config, weights, batch.ids_UC, batch.characters_U, products)
    top_outputs: list[Tensor] = []
    states: list[tuple[Tensor, Tensor]] = []
    for direction, index_N in enumerate(batch.index_2N):
        x_NP = words_UP.index_select(0, torch.from_numpy(index_N).to(words_UP.device))
        layers, layer_states = run_direction(
            config, weights, direction, x_NP, batch.alive, start, dropout, products
        )
        top_outputs.append(layers[-1])
        states += layer_states
    return torch.cat(top_outputs), stack_states(config, states)
