"""AllenNLP's `Elmo`, `ScalarMix` and `ElmoTokenEmbedder`, the modules that task models use."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elmokit.compat.allennlp.bilm import _ElmoBiLm
from elmokit.compat.allennlp.boundaries import remove_sentence_boundaries
from elmokit.compat.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, PathOrURL
from elmokit.errors import ConfigError, InputError

logger = logging.getLogger(__name__)


class ScalarMix(torch.nn.Module):
    """AllenNLP's weighted sum of tensors, gamma · Σ softmax(s)_j · tensor_j.

    With `do_layer_norm` every tensor is first normalized to mean 0 and variance 1 over *all* words
    of the batch, so that a word's vector depends on its batch. The layer normalization of
    `elmokit.nn` does not have this problem.
    """

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        """Create the parameters; the arguments are those of AllenNLP."""
        super().__init__()
        scalars = initial_scalar_parameters
        if scalars is None:
            scalars = [0.0] * mixture_size
        if len(scalars) != mixture_size:
            raise ConfigError(
                f"scalar_mix_parameters has {len(scalars)} numbers; "
                f"expected {mixture_size}, one per layer"
            )
        self.mixture_size = mixture_size
        self.do_layer_norm = do_layer_norm
        self.scalar_parameters = torch.nn.ParameterList(
            torch.nn.Parameter(torch.tensor([float(s)]), requires_grad=trainable) for s in scalars
        )
        self.gamma = torch.nn.Parameter(torch.tensor([1.0]), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Return the sum of tensors (B, T, D); the mask (B, T) is needed for `do_layer_norm`."""
        if len(tensors) != self.mixture_size:
            raise InputError(
                f"tensors has {len(tensors)} items; expected {self.mixture_size}, the mixture_size"
            )
        shares = torch.cat(list(self.scalar_parameters)).softmax(dim=0)
        if self.do_layer_norm:
            if mask is None:
                raise InputError("mask is None; do_layer_norm needs the mask")
            tensors = [_normalize(tensor, mask) for tensor in tensors]
        mixed: Tensor = self.gamma * sum(s * t for s, t in zip(shares, tensors, strict=True))
        return mixed


def _normalize(tensor: Tensor, mask: Tensor) -> Tensor:
    present = mask.unsqueeze(-1)
    count = mask.sum() * tensor.shape[-1]
    mean = (tensor * present).sum() / count
    variance = (((tensor * present - mean) * present) ** 2).sum() / count
    tiny = 1e-4 if variance.dtype == torch.half else 1e-13
    return (tensor - mean) / (variance + tiny).sqrt()


class Elmo(torch.nn.Module):
    """AllenNLP's `Elmo`: `num_output_representations` weighted sums of the layers of a biLM."""

    def __init__(
        self,
        options_file: PathOrURL | None,
        weight_file: PathOrURL | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: list[float] | None = None,
        module: torch.nn.Module | None = None,
    ) -> None:
        """Load a biLM; the arguments are those of AllenNLP.

        If `weight_file` is None, `options_file` may be any model that `elmokit.Elmo.load` takes.
        """
        super().__init__()
        if module is not None:
            if options_file is not None or weight_file is not None:
                raise ConfigError("give either options_file and weight_file or module, not both")
            self._elmo_lstm: Any = module
        elif options_file is None:
            raise ConfigError("options_file is None; expected the path of an options.json file")
        else:
            self._elmo_lstm = _ElmoBiLm(options_file, weight_file, requires_grad, vocab_to_cache)
        self._has_cached_vocab = vocab_to_cache is not None
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = torch.nn.Dropout(p=dropout)
        self._scalar_mixes = []
        for k in range(num_output_representations):
            mix = ScalarMix(
                self._elmo_lstm.num_layers,
                do_layer_norm=do_layer_norm,
                initial_scalar_parameters=scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{k}", mix)
            self._scalar_mixes.append(mix)

    @classmethod
    def from_params(cls, params: Any) -> Elmo:
        """Create an `Elmo` from its arguments by name: a dictionary, or AllenNLP's `Params`."""
        return cls(**_arguments(params))

    def get_output_dim(self) -> int:
        """Return the size D of a vector."""
        return int(self._elmo_lstm.get_output_dim())

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Embed a batch.

        Args:
            inputs: Character ids (…, T, C) of `batch_to_ids`.
            word_inputs: With `vocab_to_cache`, indices (…, T) into it.

        Returns:
            `elmo_representations`, a list of (…, T, D), one per weighted sum; and `mask`, (…, T),
            true where there is a word. T + 2 instead of T with `keep_sentence_boundaries`.
        """
        if word_inputs is not None and not self._has_cached_vocab:
            logger.warning("word_inputs is ignored, since ELMo has no cached vocabulary")
            word_inputs = None
        before = inputs.shape[:-2] if word_inputs is None else word_inputs.shape[:-1]
        output = self._elmo_lstm(
            inputs.reshape(-1, *inputs.shape[-2:]),
            None if word_inputs is None else word_inputs.reshape(-1, word_inputs.shape[-1]),
        )
        mask = output["mask"]
        representations = []
        for k in range(len(self._scalar_mixes)):
            mixed = getattr(self, f"scalar_mix_{k}")(output["activations"], mask)
            if not self._keep_sentence_boundaries:
                mixed, _ = remove_sentence_boundaries(mixed, mask)
            dropped = self._dropout(mixed)
            representations.append(dropped.reshape(*before, *dropped.shape[1:]))
        if not self._keep_sentence_boundaries:
            mask = mask[:, 2:]
        return {
            "elmo_representations": representations,
            "mask": mask.reshape(*before, mask.shape[-1]),
        }


class ElmoTokenEmbedder(torch.nn.Module):
    """AllenNLP's `ElmoTokenEmbedder`: one weighted sum of the layers, optionally projected."""

    def __init__(
        self,
        options_file: PathOrURL = DEFAULT_OPTIONS_FILE,
        weight_file: PathOrURL | None = DEFAULT_WEIGHT_FILE,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        requires_grad: bool = False,
        projection_dim: int | None = None,
        vocab_to_cache: list[str] | None = None,
        scalar_mix_parameters: list[float] | None = None,
    ) -> None:
        """Load a biLM; the arguments are those of AllenNLP, see `Elmo`."""
        super().__init__()
        self._elmo = Elmo(
            options_file,
            weight_file,
            1,
            do_layer_norm=do_layer_norm,
            dropout=dropout,
            requires_grad=requires_grad,
            vocab_to_cache=vocab_to_cache,
            scalar_mix_parameters=scalar_mix_parameters,
        )
        self.output_dim = projection_dim or self._elmo.get_output_dim()
        self._projection: torch.nn.Linear | None = None
        if projection_dim:
            self._projection = torch.nn.Linear(self._elmo.get_output_dim(), projection_dim)

    @classmethod
    def from_params(cls, vocab: Any, params: Any) -> ElmoTokenEmbedder:
        """Create an embedder from its arguments by name; the vocabulary is not used.

        Args:
            vocab: Anything. Give `vocab_to_cache` as a list of words among the arguments.
            params: A dictionary, or AllenNLP's `Params`.
        """
        return cls(**_arguments(params))

    def get_output_dim(self) -> int:
        """Return the size of a vector."""
        return self.output_dim

    def forward(self, elmo_tokens: Tensor, word_inputs: Tensor | None = None) -> Tensor:
        """Return the vectors (…, T, output_dim) for character ids (…, T, C)."""
        vectors: Tensor = self._elmo(elmo_tokens, word_inputs)["elmo_representations"][0]
        return vectors if self._projection is None else self._projection(vectors)


def _arguments(params: Any) -> dict[str, Any]:
    """Return the arguments in a dictionary or in AllenNLP's `Params`, without its type name."""
    named = params.as_dict() if hasattr(params, "as_dict") else dict(params)
    return {name: value for name, value in named.items() if name != "type"}
