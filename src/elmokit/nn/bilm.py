"""The biLM as a module: the canonical weights as parameters, from a `BiLM` and back to one.

What it computes is in `network.py`. State is an argument and a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX, expected_shapes
from elmokit.nn import network
from elmokit.nn.batch import Batch
from elmokit.nn.state import TensorState


class BiLMModule(torch.nn.Module):
    """A biLM that learns: same weights as the engine's, same layers to 1e-5, with gradients.

    The canonical `forward.0.input.weight` is `weights.forward_0_input_weight` in its state dict.
    """

    def __init__(self, config: BiLMConfig, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Copies the weights as float32; the softmax, if there is one, is not part of it."""
        super().__init__()
        self.config = config
        self._keys = {name: name.replace(".", "_") for name in expected_shapes(config)}
        self.weights = torch.nn.ParameterDict(
            {
                key: torch.nn.Parameter(torch.from_numpy(np.array(weights[name], np.float32)))
                for name, key in self._keys.items()
            }
        )

    @classmethod
    def of(cls, bilm: BiLM) -> BiLMModule:
        """From a model as data."""
        return cls(bilm.config, bilm.weights)

    def tensors(self) -> dict[str, Tensor]:
        """The parameters by their canonical names."""
        return {name: self.weights[key] for name, key in self._keys.items()}

    def to_weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """A copy of the parameters for the engine and for files."""
        return {
            name: tensor.detach().to("cpu", torch.float32).numpy().copy()
            for name, tensor in self.tensors().items()
        }

    def to_bilm(self, like: BiLM | None = None) -> BiLM:
        """A model as data. Vocabulary, softmax, mix and extra arrays are those of `like`.

        Its settled state is not kept: other weights settle elsewhere.
        """
        weights = self.to_weights()
        if like is None:
            return BiLM(self.config, weights)
        weights |= {name: like.weights[name] for name in SOFTMAX if name in like.weights}
        return replace(like, config=self.config, weights=weights, settled=None)

    def zero_state(self, rows: int) -> TensorState:
        """A state of nothing read, where the parameters are."""
        some = next(self.parameters())
        return TensorState.zeros(self.config, rows, dtype=some.dtype, device=some.device)

    def forward(self, batch: Batch, state: TensorState) -> tuple[Tensor, TensorState]:
        """All layers (L+1, N, D) of a batch, and the state after it; `batch.pad` makes (B, T)."""
        return network.read(self.config, self.tensors(), batch, state)
