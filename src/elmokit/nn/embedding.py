"""The layer that a task model uses: sentences in, one padded tensor for each mix out.

    elmo = ElmoEmbedding("path/to/model", mixes=2, dropout=0.5)
    (lower, upper), mask, _ = elmo([["She", "went", "."], ["Yes"]])   # (2, 3, D) each, (2, 3)

Every mix is independent; the biLM runs once. It is frozen and runs in the fast engine, or learns
with the task (`trainable=True`).
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
from elmokit.elmo import Elmo, locate
from elmokit.errors import InputError, InputTypeError
from elmokit.nn.batch import Batch, BatchMaker
from elmokit.nn.bilm import BiLMModule
from elmokit.nn.frozen import FrozenBiLM
from elmokit.nn.mix import Mix, Projection
from elmokit.nn.state import TensorState

Start = Literal["settled", "zero"]


class Embedded(NamedTuple):
    """What `ElmoEmbedding` gives for a batch."""

    vectors: list[Tensor]
    """For every mix (B, T, D), zero where there is no word."""
    mask: Tensor
    """(B, T), true where there is a word."""
    state: TensorState
    """After the batch, without gradients: for whoever wants to carry on from there."""


class ElmoEmbedding(torch.nn.Module):
    """ELMo vectors for a task."""

    def __init__(
        self,
        model: Elmo | BiLM | str | Path,
        *,
        mixes: int | Iterable[Mix | Projection] = 1,
        dropout: float = 0.0,
        layer_norm: bool = False,
        trainable: bool = False,
        start: Start = "settled",
        dtype: str = "float32",
        threads: int | None = None,
    ) -> None:
        """Make the layer.

        Args:
            model: a path, or a model that was loaded.
            mixes: how many to learn, or the modules themselves.
            dropout: of the mixes that are made here.
            layer_norm: of the mixes that are made here; see `Mix`.
            trainable: whether the biLM learns too, in PyTorch. Frozen, it runs in the engine on the
                CPU, and the state dict holds the mixes alone.
            start: where each sentence starts from, `"settled"` or `"zero"` as in `Elmo.load`. What
                the model settled on at first is kept when its weights move, and saved with them.
            dtype: of the frozen engine, as in `Elmo.load`.
            threads: of the frozen engine, as in `Elmo.load`.
        """
        super().__init__()
        if start not in get_args(Start):
            raise InputError(f"start is {start!r}; expected 'settled' or 'zero'")
        bilm, settled = _read(model)
        self.config = bilm.config
        self.start = start
        self.bilm: BiLMModule | FrozenBiLM
        if trainable:
            self.bilm = BiLMModule.of(bilm)
        else:
            self.bilm = FrozenBiLM(bilm, dtype=dtype, threads=threads)
        self._make = BatchMaker(bilm)
        if start == "zero":
            first = TensorState.zeros(self.config, rows=1)
        elif settled is not None:
            first = settled
        elif isinstance(self.bilm, FrozenBiLM):
            first = self.bilm.settle()
        else:
            first = FrozenBiLM(bilm, threads=threads).settle()
        # Part of what a trained model computes; a frozen one has it from its file.
        self.register_buffer("start_hidden", first.hidden, persistent=trainable)
        self.register_buffer("start_cell", first.cell, persistent=trainable)
        if isinstance(mixes, int):
            mixes = [
                Mix(self.config.layers, dropout=dropout, layer_norm=layer_norm)
                for _ in range(mixes)
            ]
        self.mixes = torch.nn.ModuleList(mixes)

    @property
    def dim(self) -> int:
        """D: the size of a mixed vector."""
        return self.config.dim

    def penalty(self, strength: float) -> Tensor:
        """The sum of the mixes' λ‖w‖²."""
        zero: Tensor = torch.zeros((), device=self._first.hidden.device)
        return sum((m.penalty(strength) for m in self.mixes if isinstance(m, Mix)), start=zero)

    def forward(
        self, sentences: Sequence[Sequence[str]] | Tensor, state: TensorState | None = None
    ) -> Embedded:
        """Embed a batch.

        Args:
            sentences: lists of words, or character ids (B, T, C) as `batch_to_ids` makes them.
            state: what each sentence continues from, one row each; by default its own start.
        """
        layers, batch, after = self._layers(sentences, state)
        return Embedded([mix(layers) for mix in self.mixes], batch.mask().to(layers.device), after)

    def layers(self, sentences: Sequence[Sequence[str]] | Tensor) -> Tensor:
        """All layers (L+1, B, T, D), not mixed."""
        return self._layers(sentences, None)[0]

    def _layers(
        self, sentences: Sequence[Sequence[str]] | Tensor, state: TensorState | None
    ) -> tuple[Tensor, Batch, TensorState]:
        if isinstance(sentences, Tensor):
            batch = self._make.of_ids(sentences)
        else:
            batch = self._make.of_words(sentences)
        if state is None:
            state = self._first.repeat(len(batch))
        layers_LND, after = self.bilm(batch, state)
        return batch.pad(layers_LND.to(self._first.hidden.device)), batch, after.detach()

    @property
    def _first(self) -> TensorState:
        return TensorState(self.get_buffer("start_hidden"), self.get_buffer("start_cell"))

    def to_bilm(self, like: BiLM | None = None) -> BiLM:
        """The biLM as it is now, to save or to embed with, with the start that sentences have here.

        What is not learned (vocabulary, softmax, …) is taken from `like`.
        """
        bilm = self.bilm.to_bilm(like) if isinstance(self.bilm, BiLMModule) else self.bilm.bilm
        return replace(bilm, settled=None if self.start == "zero" else self._first.numpy())


def _read(model: Elmo | BiLM | str | Path) -> tuple[BiLM, TensorState | None]:
    """A model as data, and its settled state if that is known already."""
    if isinstance(model, Elmo):
        return model.bilm, TensorState.of(model.settled)
    if isinstance(model, (str, Path)):
        model = formats.read(locate(model))
    if not isinstance(model, BiLM):
        raise InputTypeError(f"model is {type(model).__name__}; expected a path, an Elmo or a BiLM")
    return model, None if model.settled is None else TensorState.of(model.settled)
