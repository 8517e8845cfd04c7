"""The network as functions of its weights: what `engine/reference.py` computes, with gradients.

The weights are tensors under the canonical names of `bilm/weights.py`: parameters of `BiLMModule`,
or tensors computed from parameters of another module. Keeps no state.

Shape letters: U distinct words, C characters, E character embedding, F filters, N words of a
batch, P width, H cells, G = 4H gates, D = 2P, L LSTM layers, B sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.config import BiLMConfig, CharCNNConfig
from elmokit.bilm.weights import DIRECTIONS
from elmokit.engine.batching import IntArray
from elmokit.engine.native import Products
from elmokit.nn.batch import Batch
from elmokit.nn.bfloat16 import affine
from elmokit.nn.convolution import can_convolve_with_tables, table_convolution
from elmokit.nn.lstm import LSTMWeights, projected_lstm
from elmokit.nn.state import TensorState

TensorWeights = Mapping[str, Tensor]
"""Weights of a biLM by their canonical names."""


def compute_layers(
    config: BiLMConfig, weights: TensorWeights, batch: Batch, state: TensorState
) -> tuple[Tensor, TensorState]:
    """Return all layers (L+1, N, D) of a batch, in sentence order, and the state after it."""
    words_NP = word_vectors(config, weights, batch)
    index_N = torch.from_numpy(batch.index_N).to(words_NP.device)
    return contextualize(config, weights, words_NP.index_select(0, index_N), batch, state)


# -- characters to word vectors ----------------------------------------------------------------


def word_vectors(config: BiLMConfig, weights: TensorWeights, batch: Batch) -> Tensor:
    """Return layer 0: the context-free vectors (U, P) of the distinct words of a batch."""
    x_UP = character_vectors(config, weights, batch.ids_UC, batch.characters_U)
    if batch.entries_U is not None:  # the model has vectors of whole words, too
        entries_U = torch.from_numpy(batch.entries_U).to(x_UP.device)
        known_UE = functional.embedding(entries_U, weights["words.embedding"])
        x_UP = torch.addmm(x_UP, known_UE, weights["words.projection"])
    return x_UP


def character_vectors(
    config: BiLMConfig,
    weights: TensorWeights,
    ids_UC: npt.NDArray[np.int16],
    characters_U: IntArray,
    products: Products = "float32",
) -> Tensor:
    """Return the vectors (U, P) that the character network computes for words."""

    def apply_affine(x: Tensor, name: str) -> Tensor:
        return affine(x, weights[f"{name}.weight"], weights[f"{name}.bias"], products)

    cnn = config.char_cnn
    x_UF = pooled_filters(cnn, weights, ids_UC, characters_U)
    for k in range(cnn.highways):
        name = f"characters.highway.{k}"
        gate = apply_affine(x_UF, f"{name}.carry").sigmoid()
        x_UF = gate * apply_affine(x_UF, f"{name}.transform").relu() + (1 - gate) * x_UF
    return apply_affine(x_UF, "characters.projection") if cnn.projection else x_UF


def pooled_filters(
    cnn: CharCNNConfig,
    weights: TensorWeights,
    ids_UC: npt.NDArray[np.int16],
    characters_U: IntArray,
) -> Tensor:
    """Return the max-pooled filter outputs (U, F); the compiled kernel runs where it can."""
    embedding_CE = weights["characters.embedding"]
    names = [f"characters.convolution.{i}" for i in range(len(cnn.filters))]
    filters = [weights[f"{name}.weight"] for name in names]
    biases = [weights[f"{name}.bias"] for name in names]
    if can_convolve_with_tables(cnn, embedding_CE, *filters, *biases):
        return table_convolution(cnn, embedding_CE, filters, biases, ids_UC, characters_U)
    chars_UC = torch.from_numpy(ids_UC).to(embedding_CE.device, torch.long)
    longest = int(characters_U.max(initial=0))
    pooled = []
    for (width, _), filters_WEF, bias_F in zip(cnn.filters, filters, biases, strict=True):
        # Windows that start after the longest word contain padding only and are all equal: one of
        # them is enough, for the result and for its gradient.
        used_UC = chars_UC[:, : min(longest + width, cnn.max_characters)]
        chars_UEC = functional.embedding(used_UC, embedding_CE).transpose(1, 2)
        windows_UFX = functional.conv1d(chars_UEC, filters_WEF.permute(2, 1, 0), bias_F)
        pooled.append(windows_UFX.amax(dim=2))
    x_UF = torch.cat(pooled, dim=1)
    return x_UF.tanh() if cnn.activation == "tanh" else x_UF.relu()


# -- word vectors to contextual vectors --------------------------------------------------------


def contextualize(
    config: BiLMConfig,
    weights: TensorWeights,
    words_NP: Tensor,
    batch: Batch,
    state: TensorState,
) -> tuple[Tensor, TensorState]:
    """Return all layers (L+1, N, D), given the word vectors, and the state after the batch.

    Rows of the state are sentences. Layer 0 is the word vector twice.
    """
    state.check(config, rows=len(batch))
    if not len(batch):
        return words_NP.new_zeros(config.layers, 0, config.dim), state
    packing, device = batch.packing, words_NP.device
    order, mirror, source = (
        torch.from_numpy(index).to(device)
        for index in (packing.order, packing.mirror, packing.source)
    )
    start = state.to(words_NP).select(order)
    packed_NP = words_NP.index_select(0, source)
    directions: list[list[Tensor]] = []
    states: list[tuple[Tensor, Tensor]] = []
    for direction in range(len(DIRECTIONS)):
        # The backward model is the same network reading every sentence from its end.
        x_NP = packed_NP if direction == 0 else packed_NP.index_select(0, mirror)
        layers, layer_states = run_direction(config, weights, direction, x_NP, packing.alive, start)
        directions.append([x if direction == 0 else x.index_select(0, mirror) for x in layers])
        states += layer_states
    layers_LND = torch.stack([torch.cat(pair, dim=1) for pair in zip(*directions, strict=True)])
    after = stack_states(config, states)
    return layers_LND.index_select(1, source.argsort()), after.select(order.argsort())


def run_direction(
    config: BiLMConfig,
    weights: TensorWeights,
    direction: int,
    x_NP: Tensor,
    alive: IntArray,
    start: TensorState,
    dropout: Callable[[Tensor], Tensor] = lambda x: x,
    products: Products = "float32",
) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
    """Return all layers (N, P) of one direction, and (hidden, cell) after each LSTM layer.

    Args:
        config: Architecture of the network.
        weights: Weights by their canonical names.
        direction: 0 for forward, 1 for backward.
        x_NP: Word vectors in the order in which this direction reads them.
        alive: Number of sentences that have a word at each step.
        start: State before the first word; its rows are ranks of the packing.
        dropout: Applied to the input of every LSTM layer.
        products: How the factors of matrix products are rounded.
    """
    layers, states = [x_NP], []
    for depth in range(config.lstm.layers):
        x_NP = dropout(x_NP)
        output = projected_lstm(
            config.lstm,
            LSTMWeights.from_weights(weights, f"{DIRECTIONS[direction]}.{depth}"),
            x_NP,
            alive,
            start.hidden[depth, direction],
            start.cell[depth, direction],
            products,
        )
        skip = depth and config.lstm.skip
        x_NP = output.outputs_NP + x_NP if skip else output.outputs_NP
        layers.append(x_NP)
        states.append((output.hidden_BP, output.cell_BH))
    return layers, states


def stack_states(config: BiLMConfig, states: Sequence[tuple[Tensor, Tensor]]) -> TensorState:
    """Return one state from the (hidden, cell) of all forward, then all backward layers."""
    hidden, cell = (
        torch.stack(parts).view(2, config.lstm.layers, len(parts[0]), -1).transpose(0, 1)
        for parts in zip(*states, strict=True)
    )
    return TensorState(hidden, cell)
