"""The network as functions of its weights: `engine/reference.py` once more, with gradients.

The weights are tensors under the canonical names of `bilm/weights.py`, whoever holds them: the
parameters of `BiLMModule`, or tensors computed from someone else's parameters. Keeps no state.

Shape letters: U distinct words, C characters, E character embedding, F filters, N words of a
batch, P width, H cells, G = 4H gates, D = 2P, L LSTM layers, B sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.config import BiLMConfig, CharCNN
from elmokit.bilm.weights import DIRECTIONS
from elmokit.engine.batching import IntArray
from elmokit.nn.batch import Batch
from elmokit.nn.convolution import possible, table_convolution
from elmokit.nn.lstm import LSTMWeights, projected_lstm
from elmokit.nn.state import TensorState

TensorWeights = Mapping[str, Tensor]


def read(
    config: BiLMConfig, weights: TensorWeights, batch: Batch, state: TensorState
) -> tuple[Tensor, TensorState]:
    """All layers (L+1, N, D) of a batch in the order of its sentences, and the state after it."""
    words_NP = word_vectors(config, weights, batch)
    index_N = torch.from_numpy(batch.index_N).to(words_NP.device)
    return contextualize(config, weights, words_NP.index_select(0, index_N), batch, state)


# -- characters to word vectors ----------------------------------------------------------------


def word_vectors(config: BiLMConfig, weights: TensorWeights, batch: Batch) -> Tensor:
    """Layer 0: the distinct words of a batch to context-free vectors (U, P)."""
    x_UP = words_to_vectors(config, weights, batch.ids_UC, batch.characters_U)
    if batch.entries_U is not None:  # words that are known as a whole, too
        entries_U = torch.from_numpy(batch.entries_U).to(x_UP.device)
        known_UE = functional.embedding(entries_U, weights["words.embedding"])
        x_UP = torch.addmm(x_UP, known_UE, weights["words.projection"])
    return x_UP


def words_to_vectors(
    config: BiLMConfig,
    weights: TensorWeights,
    ids_UC: npt.NDArray[np.int16],
    characters_U: IntArray,
) -> Tensor:
    """Words, as characters, to what the network makes of their characters (U, P)."""
    cnn = config.char_cnn
    x_UF = pooled_filters(cnn, weights, ids_UC, characters_U)
    for k in range(cnn.highways):
        name = f"characters.highway.{k}"
        gate = _affine(x_UF, weights, f"{name}.carry").sigmoid()
        x_UF = gate * _affine(x_UF, weights, f"{name}.transform").relu() + (1 - gate) * x_UF
    return _affine(x_UF, weights, "characters.projection") if cnn.projection else x_UF


def pooled_filters(
    cnn: CharCNN, weights: TensorWeights, ids_UC: npt.NDArray[np.int16], characters_U: IntArray
) -> Tensor:
    """The convolution and its maximum (U, F): by the compiled kernel where that is possible."""
    embedding_CE = weights["characters.embedding"]
    names = [f"characters.convolution.{i}" for i in range(len(cnn.filters))]
    filters = [weights[f"{name}.weight"] for name in names]
    biases = [weights[f"{name}.bias"] for name in names]
    if possible(cnn, embedding_CE, *filters, *biases):
        return table_convolution(cnn, embedding_CE, filters, biases, ids_UC, characters_U)
    chars_UC = torch.from_numpy(ids_UC).to(embedding_CE.device, torch.long)
    longest = int(characters_U.max(initial=0))
    pooled = []
    for (width, _), filters_WEF, bias_F in zip(cnn.filters, filters, biases, strict=True):
        # Windows that start behind the longest word see padding only and are all equal: one of
        # them is enough, for the result and for its gradient.
        seen_UC = chars_UC[:, : min(longest + width, cnn.max_characters)]
        chars_UEC = functional.embedding(seen_UC, embedding_CE).transpose(1, 2)
        windows_UFX = functional.conv1d(chars_UEC, filters_WEF.permute(2, 1, 0), bias_F)
        pooled.append(windows_UFX.amax(dim=2))
    x_UF = torch.cat(pooled, dim=1)
    return x_UF.tanh() if cnn.activation == "tanh" else x_UF.relu()


def _affine(x: Tensor, weights: TensorWeights, name: str) -> Tensor:
    return torch.addmm(weights[f"{name}.bias"], x, weights[f"{name}.weight"])


# -- word vectors to contextual ones -----------------------------------------------------------


def contextualize(
    config: BiLMConfig,
    weights: TensorWeights,
    words_NP: Tensor,
    batch: Batch,
    state: TensorState,
) -> tuple[Tensor, TensorState]:
    """All layers (L+1, N, D) and the state after, from the word vectors of each sentence.

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
    sides: list[list[Tensor]] = []
    after: list[tuple[Tensor, Tensor]] = []
    for side in range(len(DIRECTIONS)):
        # The backward model is the same network reading every sentence from its end.
        x_NP = packed_NP if side == 0 else packed_NP.index_select(0, mirror)
        said, left = read_direction(config, weights, side, x_NP, packing.alive, start)
        sides.append([x if side == 0 else x.index_select(0, mirror) for x in said])
        after += left
    layers_LND = torch.stack([torch.cat(pair, dim=1) for pair in zip(*sides, strict=True)])
    shape = 2, config.lstm.layers, len(batch), -1
    hidden, cell = (
        torch.stack(parts).view(shape).transpose(0, 1) for parts in zip(*after, strict=True)
    )
    ranked = TensorState(hidden, cell)
    return layers_LND.index_select(1, source.argsort()), ranked.select(order.argsort())


def read_direction(
    config: BiLMConfig,
    weights: TensorWeights,
    side: int,
    x_NP: Tensor,
    alive: IntArray,
    start: TensorState,
    drop: Callable[[Tensor], Tensor] = lambda x: x,
) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
    """All layers of one direction (N, P), and hidden state and cell after each.

    Words lie in the order in which this direction reads them, rows of the state by rank; `drop` is
    done to what a layer reads.
    """
    said, after = [x_NP], []
    for depth in range(config.lstm.layers):
        x_NP = drop(x_NP)
        out_NP, hidden, cell = projected_lstm(
            config.lstm,
            LSTMWeights.of(weights, f"{DIRECTIONS[side]}.{depth}"),
            x_NP,
            alive,
            start.hidden[depth, side],
            start.cell[depth, side],
        )
        x_NP = out_NP + x_NP if depth and config.lstm.skip else out_NP
        said.append(x_NP)
        after.append((hidden, cell))
    return said, after
