"""The network as functions of its weights: `engine/reference.py` once more, with gradients.

The weights are tensors under the canonical names of `bilm/weights.py`, whoever holds them: the
parameters of `BiLMModule`, or tensors computed from someone else's parameters. Keeps no state.
`projected_lstm` is where a compiled kernel can step in.

Shape letters: U distinct words, C characters, E character embedding, F filters, N words of a
batch, P width, H cells, G = 4H gates, D = 2P, L LSTM layers, B sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.config import LSTM, BiLMConfig
from elmokit.bilm.weights import DIRECTIONS
from elmokit.engine.reference import FORGET_BIAS
from elmokit.nn.batch import Batch
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
    cnn = config.char_cnn
    embedding_CE = weights["characters.embedding"]
    ids_UC = torch.from_numpy(batch.ids_UC).to(embedding_CE.device, torch.long)
    longest = int(batch.characters_U.max(initial=0))
    pooled = []
    for i, (width, _) in enumerate(cnn.filters):
        # Windows that start behind the longest word see padding only and are all equal: one of
        # them is enough, for the result and for its gradient.
        seen_UC = ids_UC[:, : min(longest + width, cnn.max_characters)]
        chars_UEC = functional.embedding(seen_UC, embedding_CE).transpose(1, 2)
        filters_FEW = weights[f"characters.convolution.{i}.weight"].permute(2, 1, 0)
        windows_UFX = functional.conv1d(
            chars_UEC, filters_FEW, weights[f"characters.convolution.{i}.bias"]
        )
        pooled.append(windows_UFX.amax(dim=2))
    x_UF = torch.cat(pooled, dim=1)
    x_UF = x_UF.tanh() if cnn.activation == "tanh" else x_UF.relu()
    for k in range(cnn.highways):
        name = f"characters.highway.{k}"
        gate = _affine(x_UF, weights, f"{name}.carry").sigmoid()
        x_UF = gate * _affine(x_UF, weights, f"{name}.transform").relu() + (1 - gate) * x_UF
    x_UP = _affine(x_UF, weights, "characters.projection") if cnn.projection else x_UF
    if batch.entries_U is not None:  # words that are known as a whole, too
        entries_U = torch.from_numpy(batch.entries_U).to(x_UP.device)
        known_UE = functional.embedding(entries_U, weights["words.embedding"])
        x_UP = torch.addmm(x_UP, known_UE, weights["words.projection"])
    return x_UP


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
    alive = packing.alive.tolist()
    start = state.to(words_NP).select(order)
    packed_NP = words_NP.index_select(0, source)
    sides: list[list[Tensor]] = []
    after: list[tuple[Tensor, Tensor]] = []
    for side, direction in enumerate(DIRECTIONS):
        # The backward model is the same network reading every sentence from its end.
        x_NP = packed_NP if side == 0 else packed_NP.index_select(0, mirror)
        said = [x_NP]
        for depth in range(config.lstm.layers):
            out_NP, hidden, cell = projected_lstm(
                config.lstm,
                LSTMWeights.of(weights, f"{direction}.{depth}"),
                x_NP,
                alive,
                start.hidden[depth, side],
                start.cell[depth, side],
            )
            x_NP = out_NP + x_NP if depth and config.lstm.skip else out_NP
            said.append(x_NP)
            after.append((hidden, cell))
        sides.append([x if side == 0 else x.index_select(0, mirror) for x in said])
    layers_LND = torch.stack([torch.cat(pair, dim=1) for pair in zip(*sides, strict=True)])
    shape = 2, config.lstm.layers, len(batch), -1
    hidden, cell = (
        torch.stack(parts).view(shape).transpose(0, 1) for parts in zip(*after, strict=True)
    )
    ranked = TensorState(hidden, cell)
    return layers_LND.index_select(1, source.argsort()), ranked.select(order.argsort())


class LSTMWeights(NamedTuple):
    """One layer in one direction: gates in the order i, j, f, o, as the files have them."""

    input_PG: Tensor
    recurrent_PG: Tensor
    bias_G: Tensor
    projection_HP: Tensor | None

    @classmethod
    def of(cls, weights: TensorWeights, name: str) -> LSTMWeights:
        """By the canonical prefix, such as `forward.0`."""
        return cls(
            weights[f"{name}.input.weight"],
            weights[f"{name}.recurrent.weight"],
            weights[f"{name}.bias"],
            weights.get(f"{name}.projection.weight"),
        )


def projected_lstm(
    config: LSTM,
    weights: LSTMWeights,
    x_NP: Tensor,
    alive: Sequence[int],
    h_BP: Tensor,
    c_BH: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer, one direction, over packed words: its outputs and each sentence's last state.

    At step t the first `alive[t]` sentences have a word (see `engine/batching.py`).
    Where a clip bites, no gradient passes.
    """
    gates_NG = torch.addmm(weights.bias_G, x_NP, weights.input_PG)
    outputs: list[Tensor] = []
    ended: list[tuple[Tensor, Tensor]] = []
    h, c = h_BP, c_BH
    for live, gates in zip(alive, torch.split(gates_NG, list(alive)), strict=True):
        if live < len(h):
            ended.append((h[live:], c[live:]))
            h, c = h[:live], c[:live]
        i, j, f, o = torch.addmm(gates, h, weights.recurrent_PG).chunk(4, dim=1)
        c = (f + FORGET_BIAS).sigmoid() * c + i.sigmoid() * j.tanh()
        if config.cell_clip is not None:
            c = c.clamp(-config.cell_clip, config.cell_clip)
        h = o.sigmoid() * c.tanh()
        if weights.projection_HP is not None:
            h = h @ weights.projection_HP
            if config.projection_clip is not None:
                h = h.clamp(-config.projection_clip, config.projection_clip)
        outputs.append(h)
    hidden, cell = zip((h, c), *reversed(ended), strict=True)
    return torch.cat(outputs), torch.cat(hidden), torch.cat(cell)
