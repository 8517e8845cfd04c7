"""The conversion of weights between elmokit's layout and AllenNLP's.

The names are those of AllenNLP's state dict, below one half of the biLM (`_token_embedder`,
`_elmo_lstm`). Where elmokit multiplies x · W, PyTorch multiplies W · x. The gates are in the order
i, f, j, o, and the 1.0 of the forget gate is part of the bias. A highway layer is one matrix:
transform, minus carry. The character embedding begins with a row for the mask. The functions
`*_from_allennlp` are differentiable, so that gradients reach parameters in AllenNLP's layout.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from elmokit.bilm.config import CharCNNConfig, LSTMConfig
from elmokit.bilm.weights import DIRECTIONS, FORGET_BIAS

TOKEN_EMBEDDER, LSTM = "_token_embedder.", "_elmo_lstm."
"""Where the two halves of a biLM stand in AllenNLP's state dict."""
CHARACTERS = "_char_embedding_weights"


def encoder_to_allennlp(cnn: CharCNNConfig, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the weights of the character network; the names are those below `TOKEN_EMBEDDER`."""
    table_CE = ours["characters.embedding"]
    theirs = {CHARACTERS: torch.cat([table_CE.new_zeros(1, table_CE.shape[1]), table_CE])}
    for i in range(len(cnn.filters)):
        name, our = _convolution(i)
        theirs[f"{name}.weight"] = ours[f"{our}.weight"].permute(2, 1, 0)
        theirs[f"{name}.bias"] = ours[f"{our}.bias"]
    for k in range(cnn.highways):
        name, our = _highway(k)
        for part in ("weight", "bias"):
            transform, carry = (ours[f"{our}.{gate}.{part}"] for gate in ("transform", "carry"))
            if part == "weight":
                transform, carry = transform.T, carry.T
            theirs[f"{name}.{part}"] = torch.cat([transform, -carry])
    if cnn.projection:
        theirs["_projection.weight"] = ours["characters.projection.weight"].T
        theirs["_projection.bias"] = ours["characters.projection.bias"]
    return {name: tensor.contiguous() for name, tensor in theirs.items()}


def lstm_to_allennlp(lstm: LSTMConfig, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the weights of the LSTMs; the names are those below `LSTM`."""
    theirs: dict[str, Tensor] = {}
    for direction in DIRECTIONS:
        for layer in range(lstm.layers):
            name, our = _cell(direction, layer)
            theirs[f"{name}.input_linearity.weight"] = _swap(ours[f"{our}.input.weight"]).T
            theirs[f"{name}.state_linearity.weight"] = _swap(ours[f"{our}.recurrent.weight"]).T
            theirs[f"{name}.state_linearity.bias"] = _swap(
                _forget(ours[f"{our}.bias"], FORGET_BIAS)
            )
            if lstm.projection:
                theirs[f"{name}.state_projection.weight"] = ours[f"{our}.projection.weight"].T
    return {name: tensor.contiguous() for name, tensor in theirs.items()}


def encoder_from_allennlp(cnn: CharCNNConfig, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert AllenNLP's character network to canonical weights; drops the row of the mask."""
    ours = {"characters.embedding": theirs[CHARACTERS][1:]}
    for i in range(len(cnn.filters)):
        name, our = _convolution(i)
        ours[f"{our}.weight"] = theirs[f"{name}.weight"].permute(2, 1, 0)
        ours[f"{our}.bias"] = theirs[f"{name}.bias"]
    for k in range(cnn.highways):
        name, our = _highway(k)
        for part in ("weight", "bias"):
            transform, carry = theirs[f"{name}.{part}"].chunk(2)
            matrix = part == "weight"
            ours[f"{our}.transform.{part}"] = transform.T if matrix else transform
            ours[f"{our}.carry.{part}"] = -carry.T if matrix else -carry
    if cnn.projection:
        ours["characters.projection.weight"] = theirs["_projection.weight"].T
        ours["characters.projection.bias"] = theirs["_projection.bias"]
    return ours


def lstm_from_allennlp(lstm: LSTMConfig, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert AllenNLP's LSTMs to canonical weights."""
    ours: dict[str, Tensor] = {}
    for direction in DIRECTIONS:
        for layer in range(lstm.layers):
            name, our = _cell(direction, layer)
            ours[f"{our}.input.weight"] = _swap(theirs[f"{name}.input_linearity.weight"].T)
            ours[f"{our}.recurrent.weight"] = _swap(theirs[f"{name}.state_linearity.weight"].T)
            ours[f"{our}.bias"] = _forget(
                _swap(theirs[f"{name}.state_linearity.bias"]), -FORGET_BIAS
            )
            if lstm.projection:
                ours[f"{our}.projection.weight"] = theirs[f"{name}.state_projection.weight"].T
    return ours


def _convolution(i: int) -> tuple[str, str]:
    return f"char_conv_{i}", f"characters.convolution.{i}"


def _highway(k: int) -> tuple[str, str]:
    return f"_highways._layers.{k}", f"characters.highway.{k}"


def _cell(direction: str, layer: int) -> tuple[str, str]:
    return f"{direction}_layer_{layer}", f"{direction}.{layer}"


def _swap(gates: Tensor) -> Tensor:
    """Swap the middle two gates along the last axis: i, j, f, o to i, f, j, o, or back."""
    i, second, third, o = gates.chunk(4, dim=-1)
    return torch.cat([i, third, second, o], dim=-1)


def _forget(bias_G: Tensor, more: float) -> Tensor:
    """Add a constant to the bias of the forget gate, with the gates in the order i, j, f, o."""
    i, j, f, o = bias_G.chunk(4)
    return torch.cat([i, j, f + more, o])
