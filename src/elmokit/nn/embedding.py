"""The layer that a task model uses: sentences in, one padded tensor per mix out.

    elmo = ElmoEmbedding("path/to/model", mixes=2, dropout=0.5)
    (lower, upper), mask, _ = elmo([["She", "went", "."], ["Yes"]])   # (2, 3, D) each, (2, 3)

The mixes are independent of each other; the biLM runs once for all of them. It is frozen and runs
in the fast engine, or is trained with the task (`trainable=True`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo, locate_model
from elmokit.errors import InputError, InputTypeError
from elmokit.nn.batch import Batch, Batcher
from elmokit.nn.bilm import BiLMModule
from elmokit.nn.frozen import FrozenBiLM
from elmokit.nn.mix import LayerProjection, LearnedMix
from elmokit.nn.state import TensorState

StartState = Literal["settled", "zero"]
"""State that each sentence starts from."""


class EmbeddingOutput(NamedTuple):
    """Result of `ElmoEmbedding` for a batch."""

    vectors: list[Tensor]
    """Vectors of each mix, (B, T, D), with zeros where there is no word."""
    mask: Tensor
    """Whether there is a word, (B, T)."""
    state: TensorState
    """LSTM state after the batch, without gradients, to continue from."""


class ElmoEmbedding(torch.nn.Module):
    """ELMo vectors as a layer of a task model."""

    def __init__(
        self,
        model: Elmo | BiLM | str | Path,
        *,
        mixes: int | Iterable[LearnedMix | LayerProjection] = 1,
        dropout: float = 0.0,
        layer_norm: bool = False,
        trainable: bool = False,
        start: StartState = "settled",
        dtype: str = "float32",
        threads: int | None = None,
    ) -> None:
        """Create the layer.

        Args:
            model: Path or name of a model, or a loaded model.
            mixes: Number of mixes to learn, or the modules themselves.
            dropout: Dropout probability of the mixes that are created here.
            layer_norm: Whether the mixes that are created here normalize; see `LearnedMix`.
            trainable: Train the biLM too, in PyTorch. A frozen one runs in the engine on the CPU,
                and the state dict contains the mixes only.
            start: State that each sentence starts from, `"settled"` or `"zero"`, as in `Elmo.load`.
                The settled state is computed once; it stays as it is while the weights are trained,
                and is saved with them.
            dtype: Precision of the frozen engine, as in `Elmo.load`.
            threads: Number of threads of the frozen engine, as in `Elmo.load`.
        """
        super().__init__()
        if start not in get_args(StartState):
            raise InputError(f"start is {start!r}; expected 'settled' or 'zero'")
        bilm, settled = _load(model)
        self.config = bilm.config
        self.start = start
        self.bilm: BiLMModule | FrozenBiLM
        if trainable:
            self.bilm = BiLMModule.from_bilm(bilm)
        else:
            self.bilm = FrozenBiLM(bilm, dtype=dtype, threads=threads)
        self._batcher = Batcher(bilm)
        if start == "zero":
            initial = TensorState.zeros(self.config, rows=1)
        elif settled is not None:
            initial = settled
        elif isinstance(self.bilm, FrozenBiLM):
            initial = self.bilm.settle()
        else:
            initial = FrozenBiLM(bilm, threads=threads).settle()
        # Part of what a trained model computes; a frozen one gets it from its file.
        self.register_buffer("start_hidden", initial.hidden, persistent=trainable)
        self.register_buffer("start_cell", initial.cell, persistent=trainable)
        if isinstance(mixes, int):
            mixes = [
                LearnedMix(self.config.layers, dropout=dropout, layer_norm=layer_norm)
                for _ in range(mixes)
            ]
        self.mixes = torch.nn.ModuleList(mixes)

    @property
    def dim(self) -> int:
        """Size of the vectors of a mix, D."""
        return self.config.dim

    def penalty(self, strength: float) -> Tensor:
        """Return the sum of λ‖s‖² over all mixes, to add to a task's loss; see `LearnedMix`."""
        zero: Tensor = torch.zeros((), device=self._initial.hidden.device)
        mixes = (mix for mix in self.mixes if isinstance(mix, LearnedMix))
        return sum((mix.penalty(strength) for mix in mixes), start=zero)

    def forward(
        self, sentences: Sequence[Sequence[str]] | Tensor, state: TensorState | None = None
    ) -> EmbeddingOutput:
        """Embed a batch of sentences.

        Args:
            sentences: Lists of words, or character ids (B, T, C) from `batch_to_ids`.
            state: State that the sentences continue from, one row each; by default each sentence
                starts from the layer's own start state.
        """
        layers, batch, after = self._compute_layers(sentences, state)
        mask = batch.mask().to(layers.device)
        return EmbeddingOutput([mix(layers) for mix in self.mixes], mask, after)

    def layers(self, sentences: Sequence[Sequence[str]] | Tensor) -> Tensor:
        """Return all layers (L+1, B, T, D) of a batch of sentences, not mixed."""
        return self._compute_layers(sentences, None)[0]

    def _compute_layers(
        self, sentences: Sequence[Sequence[str]] | Tensor, state: TensorState | None
    ) -> tuple[Tensor, Batch, TensorState]:
        if isinstance(sentences, Tensor):
            batch = self._batcher.from_character_ids(sentences)
        else:
            batch = self._batcher.from_words(sentences)
        if state is None:
            state = self._initial.repeat(len(batch))
        layers_LND, after = self.bilm(batch, state)
        return batch.pad(layers_LND.to(self._initial.hidden.device)), batch, after.detach()

    @property
    def _initial(self) -> TensorState:
        return TensorState(self.get_buffer("start_hidden"), self.get_buffer("start_cell"))

    def to_bilm(self, like: BiLM | None = None) -> BiLM:
        """Return the biLM with its current weights and start state, to save or to embed with.

        Args:
            like: Model whose vocabulary, softmax, mix and extra arrays are taken over.
        """
        bilm = self.bilm.to_bilm(like) if isinstance(self.bilm, BiLMModule) else self.bilm.bilm
        return replace(bilm, settled=None if self.start == "zero" else self._initial.numpy())


def _load(model: Elmo | BiLM | str | Path) -> tuple[BiLM, TensorState | None]:
    """Return a model, and its settled state if that is known already."""
    if isinstance(model, Elmo):
        return model.bilm, TensorState.from_state(model.settled)
    if isinstance(model, (str, Path)):
        model = formats.read(locate_model(model))
    if not isinstance(model, BiLM):
        raise InputTypeError(f"model is {type(model).__name__}; expected a path, an Elmo or a BiLM")
    return model, None if model.settled is None else TensorState.from_state(model.settled)
