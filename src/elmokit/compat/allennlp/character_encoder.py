"""AllenNLP's `_ElmoCharacterEncoder`: the context-free vectors of words, layer 0 of ELMo.

It runs in PyTorch on the module's device, each distinct word once. Within an unchanged `Elmo` the
fast engine computes the same; this module serves those who call it by itself.

Shape letters: B sentences, T words, C characters, U distinct words, E character embedding, P width.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import expected_shapes
from elmokit.compat.allennlp.boundaries import add_sentence_boundary_token_ids
from elmokit.compat.allennlp.files import PathOrURL, read_model
from elmokit.compat.allennlp.names import CHARACTERS, encoder_to_allennlp
from elmokit.errors import ConfigError, InputError
from elmokit.text.characters import BOS, EOS, encode_words


class FixedLinear(torch.nn.Linear):
    """A `Linear` with given weights, of a type of its own, so that quantization leaves it alone."""

    def __init__(self, weight: torch.nn.Parameter, bias: torch.nn.Parameter | None) -> None:
        """Take the weights (out, in) and the bias (out,)."""
        super().__init__(weight.shape[1], weight.shape[0], bias is not None, device="meta")
        self.weight = weight
        self.register_parameter("bias", bias)


class Highway(torch.nn.Module):
    """AllenNLP's `Highway`: every layer replaces a part of its input."""

    def __init__(self, layers: Iterable[torch.nn.Linear]) -> None:
        """Take the layers; each computes the new values, then the gate."""
        super().__init__()
        self._layers = torch.nn.ModuleList(layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the output of the last layer, with the shape of the input."""
        x = inputs
        for layer in self._layers:
            new, gate = layer(x).chunk(2, dim=-1)
            gate = gate.sigmoid()
            x = gate * x + (1 - gate) * new.relu()
        return x


class _ElmoCharacterEncoder(torch.nn.Module):
    """The character network with AllenNLP's parameters: character ids to context-free vectors."""

    def __init__(
        self,
        options_file: PathOrURL,
        weight_file: PathOrURL | None,
        requires_grad: bool = False,
    ) -> None:
        """Load the character network of a model; see `Elmo` for the arguments."""
        super().__init__()
        self._take(read_model(options_file, weight_file), weight_file, requires_grad)

    @classmethod
    def from_bilm(
        cls, bilm: BiLM, weight_file: PathOrURL | None, requires_grad: bool
    ) -> _ElmoCharacterEncoder:
        """Return the character network of a model that is in memory."""
        encoder = cls.__new__(cls)
        torch.nn.Module.__init__(encoder)
        encoder._take(bilm, weight_file, requires_grad)
        return encoder

    def _take(self, bilm: BiLM, weight_file: PathOrURL | None, requires_grad: bool) -> None:
        check_bytes(bilm.config)
        self._config = bilm.config
        self._weight_file = None if weight_file is None else os.fspath(weight_file)
        self.output_dim = bilm.config.lstm.width
        self.requires_grad = requires_grad
        cnn = bilm.config.char_cnn
        theirs = {
            name: torch.nn.Parameter(tensor, requires_grad=requires_grad)
            for name, tensor in encoder_to_allennlp(cnn, copy_weights(bilm, "characters")).items()
        }
        self._char_embedding_weights = theirs[CHARACTERS]
        for i, (width, count) in enumerate(cnn.filters):
            convolution = torch.nn.Conv1d(cnn.embedding_dim, count, width, device="meta")
            convolution.weight = theirs[f"char_conv_{i}.weight"]
            convolution.bias = theirs[f"char_conv_{i}.bias"]
            self.add_module(f"char_conv_{i}", convolution)
        layers = (f"_highways._layers.{k}" for k in range(cnn.highways))
        self._highways = Highway(
            FixedLinear(theirs[f"{name}.weight"], theirs[f"{name}.bias"]) for name in layers
        )
        self._projection = (
            FixedLinear(theirs["_projection.weight"], theirs["_projection.bias"])
            if cnn.projection
            else torch.nn.Identity()
        )
        marks_2C, _ = encode_words([BOS, EOS], cnn.max_characters)
        begin, end = torch.from_numpy(marks_2C.astype(np.int64) + 1)
        self._beginning_of_sentence_characters, self._end_of_sentence_characters = begin, end

    @property
    def _options(self) -> dict[str, Any]:
        """The contents of options.json."""
        return self._config.to_options()

    @property
    def _convolutions(self) -> list[torch.nn.Module]:
        return [
            self.get_submodule(f"char_conv_{i}") for i in range(len(self._config.char_cnn.filters))
        ]

    def get_output_dim(self) -> int:
        """Return the size P of a vector, half of the size of ELMo's vectors."""
        return self.output_dim

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        """Return `token_embedding` (B, T+2, P) and `mask` (B, T+2), for character ids (B, T, C).

        There are vectors of the sentence marks too. Where there is no word, the vector is that of
        the mask character, as in AllenNLP.
        """
        ids_BTC, mask_BT = self.add_bos_and_eos(inputs)
        words_UC, index = torch.unique(ids_BTC.flatten(0, 1), dim=0, return_inverse=True)
        vectors_UP = self._encode(words_UC.to(self._char_embedding_weights.device))
        vectors_BTP = vectors_UP[index.to(vectors_UP.device)].view(*mask_BT.shape, -1)
        return {"mask": mask_BT.to(vectors_UP.device), "token_embedding": vectors_BTP}

    def add_bos_and_eos(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return ids (B, T+2, C) with the sentence marks and their mask, for ids (B, T, C)."""
        check_character_ids(inputs, self._config)
        return add_sentence_boundary_token_ids(
            inputs,
            (inputs > 0).any(dim=-1),
            self._beginning_of_sentence_characters,
            self._end_of_sentence_characters,
        )

    def _encode(self, ids_UC: Tensor) -> Tensor:
        """Return the vectors (U, P) of words."""
        embedded = torch.nn.functional.embedding(ids_UC.long(), self._char_embedding_weights)
        tanh = self._config.char_cnn.activation == "tanh"
        pooled = [conv(embedded.transpose(1, 2)).amax(dim=-1) for conv in self._convolutions]
        x_UF = torch.cat([x.tanh() if tanh else x.relu() for x in pooled], dim=-1)
        vectors_UP: Tensor = self._projection(self._highways(x_UF))
        return vectors_UP


def check_bytes(config: BiLMConfig) -> None:
    """Raise `ConfigError` unless the model reads bytes, as all models of AllenNLP do."""
    if config.char_cnn.scheme != "bytes":
        raise ConfigError(
            "this model has its own alphabet, which AllenNLP's ELMo does not support; "
            "use elmokit.Elmo or elmokit.nn.ElmoEmbedding"
        )


def check_character_ids(ids: Tensor, config: BiLMConfig) -> None:
    """Raise `InputError` unless these are character ids (B, T, C) of the model."""
    cnn = config.char_cnn
    if ids.dim() != 3 or ids.shape[2] != cnn.max_characters:
        raise InputError(
            f"the character ids have the shape {tuple(ids.shape)}; expected (B, T, "
            f"{cnn.max_characters}), since this model reads words of {cnn.max_characters} "
            "characters"
        )
    if ids.numel() and not (ids.min() >= 0 and ids.max() <= cnn.characters):
        raise InputError(
            f"the character ids go from {ids.min()} to {ids.max()}; expected 1 to "
            f"{cnn.characters}, and 0 where there is no word"
        )


def copy_weights(bilm: BiLM, *parts: str) -> dict[str, Tensor]:
    """Return copies of the weights of some parts of a model, such as "characters", in float32."""
    return {
        name: torch.from_numpy(np.array(bilm.weights[name], np.float32))
        for name in expected_shapes(bilm.config)
        if name.partition(".")[0] in parts
    }
