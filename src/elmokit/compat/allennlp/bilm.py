"""AllenNLP's `_ElmoBiLm`: the biLM with AllenNLP's parameters and carried state.

Frozen parameters run in the fast engine, trainable ones in PyTorch (`nn/network.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import expected_shapes
from elmokit.compat.allennlp.files import PathOrURL, read_model
from elmokit.compat.allennlp.names import from_allennlp, to_allennlp
from elmokit.errors import ConfigError, InputError
from elmokit.nn import network
from elmokit.nn.batch import Batch, Batcher
from elmokit.nn.frozen import FrozenBiLM
from elmokit.nn.state import TensorState


class _ElmoLstm(torch.nn.Module):
    """The weights of the LSTMs, and the state that is carried from call to call.

    Existing code sets `stateful = False` or calls `reset_states()` to discard the state.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self._config = config
        self.stateful = True
        self._states: tuple[Tensor, Tensor] | None = None
        """(L, rows, 2P) and (L, rows, 2H): both directions concatenated, as in AllenNLP."""

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Set the states to zero: of all rows, or of those where the mask (rows,) is true."""
        if mask is None:
            self._states = None
            return
        rows = 0 if self._states is None else self._states[0].shape[1]
        if self._states is None or mask.shape != (rows,):
            raise InputError(f"mask has the shape {tuple(mask.shape)}; expected ({rows},)")
        reset = mask.bool().view(1, -1, 1)
        hidden, cell = (part.masked_fill(reset, 0.0) for part in self._states)
        self._states = hidden, cell

    def begin(self, rows: int) -> TensorState:
        """Return the state that each row of a batch continues from; new rows are all zeros."""
        if self._states is None or not self.stateful:
            return TensorState.zeros(self._config, rows)
        hidden, cell = (
            torch.stack(part[:, :rows].chunk(2, dim=-1), dim=1) for part in self._states
        )
        return _extend(TensorState(hidden, cell), rows)

    def end(self, after: TensorState) -> None:
        """Store the states after a batch; further rows keep theirs."""
        rows = after.rows
        new = [torch.cat(part.detach().unbind(1), dim=-1) for part in after]
        if self._states is not None:
            pairs = zip(new, self._states, strict=True)
            new = [torch.cat([part, old[:, rows:].to(part)], dim=1) for part, old in pairs]
        self._states = new[0], new[1]


def _extend(state: TensorState, rows: int) -> TensorState:
    """Return the state with at least this many rows; new ones are all zeros."""
    more = max(0, rows - state.rows)
    pad = torch.nn.functional.pad
    return TensorState(*(pad(part, (0, 0, 0, more)) for part in state))


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
        self._config = bilm.config
        if self._config.char_cnn.scheme != "bytes":
            raise ConfigError(
                "this model has its own alphabet, which AllenNLP's ELMo does not support; "
                "use elmokit.Elmo or elmokit.nn.ElmoEmbedding"
            )
        self.num_layers = self._config.layers
        self._requires_grad = requires_grad
        self._batcher = Batcher(bilm)
        self._token_embedder = torch.nn.Module()
        self._elmo_lstm = _ElmoLstm(self._config)
        ours = {
            name: torch.from_numpy(np.array(bilm.weights[name], np.float32))
            for name in expected_shapes(self._config)
        }
        self._names = []
        for name, tensor in to_allennlp(self._config, ours).items():
            _plant(self, name, torch.nn.Parameter(tensor, requires_grad=requires_grad))
            self._names.append(name)
        self._engine = _Engine(self._config, bilm, self._parameters_by_name())
        self._word_embedding: torch.nn.Module | None = None
        if vocab_to_cache:
            self.create_cached_cnn_embeddings(vocab_to_cache)

    def get_output_dim(self) -> int:
        """Return the size D of a vector."""
        return self._config.dim

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Return `activations`, a list of (B, T+2, D), and `mask` (B, T+2), for ids (B, T, C)."""
        cached = None
        if self._word_embedding is not None and word_inputs is not None:
            cached = self._cached_words(word_inputs)
        batch = self._batcher.from_character_ids(inputs) if cached is None else cached[0]
        vectors_UP = None if cached is None else cached[1]
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
        weights = from_allennlp(config, parameters)
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
            weights = from_allennlp(self._config, self._parameters_by_name())
            words_NP = network.word_vectors(self._config, weights, batch)[batch.index_N]
        self._bos_embedding, self._eos_embedding = words_NP[0].clone(), words_NP[-1].clone()
        table = words_NP[1:-1].clone()
        table[0] = 0
        self._word_embedding = torch.nn.Module()
        parameter = torch.nn.Parameter(table, requires_grad=self._requires_grad)
        self._word_embedding.register_parameter("weight", parameter)

    def _cached_words(self, word_inputs: Tensor) -> tuple[Batch, Tensor] | None:
        """Return a batch and its word vectors, or None if not all indices are cached."""
        table_VP: Tensor = self.get_parameter("_word_embedding.weight")
        ids_BT = word_inputs.detach().cpu().numpy()
        if ids_BT.size and (ids_BT.min() < 0 or ids_BT.max() >= len(table_VP)):
            return None
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
            weights = from_allennlp(self._config, parameters)
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


def _versions(parameters: Mapping[str, torch.nn.Parameter]) -> list[tuple[Tensor, int]]:
    """Return the memory of the parameters and the number of writes to it.

    The reference keeps the memory from being freed and reused for other parameters.
    """
    return [
        (parameter.detach(), 0 if parameter.is_inference() else parameter._version)
        for parameter in parameters.values()
    ]


def _differ(now: list[tuple[Tensor, int]], before: list[tuple[Tensor, int]]) -> bool:
    return len(now) != len(before) or any(
        a.data_ptr() != b.data_ptr() or writes_a != writes_b
        for (a, writes_a), (b, writes_b) in zip(now, before, strict=True)
    )


def _plant(root: torch.nn.Module, name: str, parameter: torch.nn.Parameter) -> None:
    """Register a parameter under a dotted name, creating empty modules as needed."""
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, torch.nn.Module())
        root = root.get_submodule(part)
    root.register_parameter(last, parameter)
