"""AllenNLP's `_ElmoBiLm`: the biLM with AllenNLP's parameters and carried state.

Frozen parameters run in the fast engine, trainable ones in PyTorch (`nn/network.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import DIRECTIONS
from elmokit.compat.allennlp.boundaries import add_sentence_boundary_token_ids
from elmokit.compat.allennlp.character_encoder import (
    _ElmoCharacterEncoder,
    check_bytes,
    copy_weights,
)
from elmokit.compat.allennlp.elmo_lstm import ElmoLstm
from elmokit.compat.allennlp.files import PathOrURL, read_model
from elmokit.compat.allennlp.names import (
    LSTM,
    TOKEN_EMBEDDER,
    encoder_from_allennlp,
    lstm_from_allennlp,
)
from elmokit.errors import InputError
from elmokit.nn import network
from elmokit.nn.batch import Batch, Batcher
from elmokit.nn.frozen import FrozenBiLM
from elmokit.nn.state import TensorState
from elmokit.text.characters import PADDING

logger = logging.getLogger(__name__)

SAMPLED_VALUES = 64
"""Values of each parameter that are compared to see whether it was changed."""


class _ElmoBiLm(torch.nn.Module):
    """The biLM with AllenNLP's parameters: the same names, shapes and layouts.

    Frozen parameters run in the fast engine on the CPU; if any of them requires a gradient, all run
    in PyTorch.
    """

    def __init__(
        self,
        options_file: PathOrURL,
        weight_file: PathOrURL | None,
        requires_grad: bool = False,
        vocab_to_cache: list[str] | None = None,
    ) -> None:
        """See `Elmo`."""
        super().__init__()
        bilm = read_model(options_file, weight_file)
        check_bytes(bilm.config)
        self._config = bilm.config
        self.num_layers = self._config.layers
        self._requires_grad = requires_grad
        self._batcher = Batcher(bilm)
        self._token_embedder = _ElmoCharacterEncoder.from_bilm(bilm, weight_file, requires_grad)
        lstms = copy_weights(bilm, *DIRECTIONS)
        self._elmo_lstm = ElmoLstm.from_weights(self._config, lstms, requires_grad)
        self._names = [name for name, _ in self.named_parameters()]
        self._engine = _Engine(self._config, bilm, self._parameters_by_name())
        self._word_embedding: torch.nn.Embedding | None = None
        if vocab_to_cache:
            self.create_cached_cnn_embeddings(vocab_to_cache)

    def get_output_dim(self) -> int:
        """Return the size D of a vector."""
        return self._config.dim

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Return `activations`, a list of (B, T+2, D), and `mask` (B, T+2), for ids (B, T, C)."""
        if self._word_embedding is None or not self._are_cached(word_inputs):
            word_inputs = None
        if self._is_changed() or (word_inputs is None and _has_zeros_in_words(inputs)):
            return self._run_parts(inputs, word_inputs)
        if word_inputs is None:
            batch, vectors_UP = self._batcher.from_character_ids(inputs), None
        else:
            batch, vectors_UP = self._cached_words(word_inputs)
        parameters = self._parameters_by_name()
        state = self._elmo_lstm.begin(len(batch))
        if any(parameter.requires_grad for parameter in self.parameters()):
            layers_LND, after = self._run_trainable(parameters, batch, vectors_UP, state)
        else:
            layers_LND, after = self._run_frozen(parameters, batch, vectors_UP, state)
        self._elmo_lstm.end(after)
        like = next(iter(parameters.values()))
        layers_LBTD = batch.pad(layers_LND.to(like), marks=True)
        return {
            "activations": list(layers_LBTD.unbind()),
            "mask": batch.mask(marks=True).to(like.device),
        }

    def add_bos_and_eos(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return ids (B, T+2, C) with the sentence marks and their mask, for ids (B, T, C).

        `forward` does it by itself. Without a character encoder, which may be removed where word
        vectors are cached, there are no ids of the marks.
        """
        return self._token_embedder.add_bos_and_eos(inputs)

    # -- modules that others have changed ------------------------------------------------------

    def _is_changed(self) -> bool:
        """Whether somebody has replaced or removed a part of this module, or put a hook on one."""
        parts = [self._modules.get(name) for name in ("_token_embedder", "_elmo_lstm")]
        if [type(part) for part in parts] != [_ElmoCharacterEncoder, ElmoLstm]:
            return True
        return any(
            module._forward_hooks
            or module._forward_pre_hooks
            or module._backward_hooks
            or module._backward_pre_hooks
            for module in self.modules()
            if module is not self
        )

    def _run_parts(self, inputs: Tensor, word_inputs: Tensor | None) -> dict[str, Any]:
        """Call the parts one after another, as AllenNLP does; slower than the engine."""
        if word_inputs is None or self._word_embedding is None:
            embedded = self._token_embedder(inputs)
            words_BTP, mask_BT = embedded["token_embedding"], embedded["mask"]
        else:
            words_BTP, mask_BT = add_sentence_boundary_token_ids(
                self._word_embedding(word_inputs),
                word_inputs > 0,
                self._bos_embedding,
                self._eos_embedding,
            )
        outputs = self._elmo_lstm(words_BTP, mask_BT)
        first = torch.cat([words_BTP, words_BTP], dim=-1) * mask_BT.unsqueeze(-1)
        return {"activations": [first, *outputs.unbind()], "mask": mask_BT}

    # -- the whole at once ---------------------------------------------------------------------

    def _parameters_by_name(self) -> dict[str, torch.nn.Parameter]:
        return {name: self.get_parameter(name) for name in self._names}

    def _run_trainable(
        self,
        parameters: dict[str, torch.nn.Parameter],
        batch: Batch,
        vectors_UP: Tensor | None,
        state: TensorState,
    ) -> tuple[Tensor, TensorState]:
        config = self._config
        weights = _from_allennlp(config, parameters)
        if vectors_UP is None:
            vectors_UP = network.word_vectors(config, weights, batch)
        words_NP = vectors_UP[torch.from_numpy(batch.index_N).to(vectors_UP.device)]
        return network.contextualize(config, weights, words_NP, batch, state)

    def _run_frozen(
        self,
        parameters: dict[str, torch.nn.Parameter],
        batch: Batch,
        vectors_UP: Tensor | None,
        state: TensorState,
    ) -> tuple[Tensor, TensorState]:
        engine = self._engine.current(parameters)
        if vectors_UP is None:
            return engine(batch, state)
        words_NP = vectors_UP.to("cpu", torch.float32).numpy()[batch.index_N]
        return engine.contextualize(words_NP, batch, state)

    # -- cached word vectors -------------------------------------------------------------------

    def create_cached_cnn_embeddings(self, tokens: list[str]) -> None:
        """Compute the word vectors of a vocabulary, so that `word_inputs` are indices into it.

        Index 0 is padding, whatever the first word is.
        """
        batch = self._batcher.from_words([tokens])
        with torch.no_grad():
            weights = _from_allennlp(self._config, self._parameters_by_name())
            words_NP = network.word_vectors(self._config, weights, batch)[batch.index_N]
        self._bos_embedding, self._eos_embedding = words_NP[0].clone(), words_NP[-1].clone()
        table = words_NP[1:-1].clone()
        table[0] = 0
        self._word_embedding = torch.nn.Embedding(len(table), table.shape[1], 0, _weight=table)
        self._word_embedding.weight.requires_grad_(self._requires_grad)

    def _are_cached(self, word_inputs: Tensor | None) -> bool:
        """Whether all indices are in the table of cached words."""
        if word_inputs is None:
            return False
        words = len(self.get_parameter("_word_embedding.weight"))
        return not word_inputs.numel() or bool(0 <= word_inputs.min() <= word_inputs.max() < words)

    def _cached_words(self, word_inputs: Tensor) -> tuple[Batch, Tensor]:
        """Return a batch of cached words and its word vectors."""
        table_VP: Tensor = self.get_parameter("_word_embedding.weight")
        ids_BT = word_inputs.detach().cpu().numpy()
        lengths_B = (ids_BT > 0).sum(axis=1)
        if ((ids_BT > 0) != (np.arange(ids_BT.shape[1]) < lengths_B[:, None])).any():
            raise InputError("word_inputs has a word after a 0; expected padding only at the end")
        rows = [
            [0, *(row[:length] + 2).tolist(), 1]
            for row, length in zip(ids_BT, lengths_B, strict=True)
        ]
        marks_2P = torch.stack([self._bos_embedding, self._eos_embedding]).to(table_VP)
        batch = Batch(
            np.zeros((0, self._config.char_cnn.max_characters), np.int16),
            np.zeros(0, np.int64),
            np.array([row for sentence in rows for row in sentence], np.int64),
            tuple(lengths_B.tolist()),
            ids_BT.shape[1],
        )
        return batch, torch.cat([marks_2P, table_VP])


class _Engine:
    """The fast engine for frozen parameters, created again when they have changed."""

    def __init__(
        self,
        config: BiLMConfig,
        bilm: BiLM | None = None,
        parameters: Mapping[str, torch.nn.Parameter] | None = None,
    ) -> None:
        """Prepare the engine.

        Args:
            config: Architecture of the model.
            bilm: Model with the values of the parameters; used until they are written to.
            parameters: The parameters by AllenNLP's names.
        """
        self._config = config
        self._bilm = bilm
        self._versions = _versions(parameters or {})
        self._frozen: FrozenBiLM | None = None

    def current(self, parameters: Mapping[str, torch.nn.Parameter]) -> FrozenBiLM:
        """Return an engine with the present values of the parameters."""
        now = _versions(parameters)
        if self._bilm is None or _differ(now, self._versions):
            weights = _from_allennlp(self._config, parameters)
            self._bilm = BiLM(
                self._config,
                {
                    name: tensor.detach().to("cpu", torch.float32).numpy().copy()
                    for name, tensor in weights.items()
                },
            )
            self._versions, self._frozen = now, None
        if self._frozen is None:
            self._frozen = FrozenBiLM(self._bilm, threads=torch.get_num_threads())
        return self._frozen

    def __reduce__(self) -> Any:
        """Copy without the model: a copy belongs to copies of the parameters."""
        return _Engine, (self._config,)


class _Fingerprint(NamedTuple):
    """What shows that a parameter has been written to."""

    memory: Tensor
    """The values; a reference keeps their memory from being freed and reused."""
    writes: int
    """PyTorch's count of writes, which does not include those through `parameter.data`."""
    sample: Tensor
    """Some values, spread over the parameter, for writes that are not counted."""


def _versions(parameters: Mapping[str, torch.nn.Parameter]) -> list[_Fingerprint]:
    return [
        _Fingerprint(
            parameter.detach(),
            0 if parameter.is_inference() else parameter._version,
            _sample(parameter).clone(),
        )
        for parameter in parameters.values()
    ]


def _sample(parameter: torch.nn.Parameter) -> Tensor:
    flat = parameter.detach().flatten()
    return flat[:: max(1, len(flat) // SAMPLED_VALUES)]


def _differ(now: list[_Fingerprint], before: list[_Fingerprint]) -> bool:
    return len(now) != len(before) or any(
        a.memory.data_ptr() != b.memory.data_ptr()
        or a.writes != b.writes
        or not torch.equal(a.sample, b.sample)
        for a, b in zip(now, before, strict=True)
    )


def _from_allennlp(config: BiLMConfig, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert all parameters of a biLM to canonical weights."""
    halves = [
        {
            name.removeprefix(half): tensor
            for name, tensor in theirs.items()
            if name.startswith(half)
        }
        for half in (TOKEN_EMBEDDER, LSTM)
    ]
    return encoder_from_allennlp(config.char_cnn, halves[0]) | lstm_from_allennlp(
        config.lstm, halves[1]
    )


def _has_zeros_in_words(ids_BTC: Tensor) -> bool:
    """Whether a word contains 0, which AllenNLP reads as a character whose embedding is zeros."""
    if ids_BTC.dim() != 3:
        return False
    nonzero = ids_BTC > 0
    found = bool((nonzero.any(dim=-1) & ~nonzero.all(dim=-1)).any())
    if found:
        logger.warning(
            "words of the character ids contain 0, which means no word; batch_to_ids pads words "
            "with %d, as the models were trained",
            PADDING + 1,
        )
    return found
