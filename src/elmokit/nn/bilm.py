"""The biLM as a module: the canonical weights as parameters, from a `BiLM` and back to one.

`network.py` has the computation. The LSTM state is an argument and a result.
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
    """A trainable biLM: same weights and, to 1e-5, same layers as the engine's, with gradients.

    The canonical `forward.0.input.weight` is `weights.forward_0_input_weight` in its state dict.
    """

    def __init__(self, config: BiLMConfig, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Copy the weights as float32 parameters; a softmax among them is left out."""
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
    def from_bilm(cls, bilm: BiLM) -> BiLMModule:
        """Return a module with the weights of a loaded model."""
        return cls(bilm.config, bilm.weights)

    def tensors(self) -> dict[str, Tensor]:
        """Return the parameters by their canonical names."""
        return {name: self.weights[key] for name, key in self._keys.items()}

    def to_weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return a copy of the parameters as arrays, for the engine and for files."""
        return {
            name: tensor.detach().to("cpu", torch.float32).numpy().copy()
            for name, tensor in self.tensors().items()
        }

    def to_bilm(self, like: BiLM | None = None) -> BiLM:
        """Return a model with the current weights, to save or to embed with.

        The settled state is dropped, since other weights settle elsewhere.

        Args:
            like: Model whose vocabulary, softmax, mix and extra arrays are taken over.
        """
        weights = self.to_weights()
        if like is None:
            return BiLM(self.config, weights)
        weights |= {name: like.weights[name] for name in SOFTMAX if name in like.weights}
        return replace(like, config=self.config, weights=weights, settled=None)

    def zero_state(self, rows: int) -> TensorState:
        """Return a state of zeros, with the dtype and device of the parameters."""
        parameter = next(self.parameters())
        return TensorState.zeros(self.config, rows, dtype=parameter.dtype, device=parameter.device)

    def forward(self, batch: Batch, state: TensorState) -> tuple[Tensor, TensorState]:
        """Return all layers (L+1, N, D) of a batch, and the state after it.

        `batch.pad` arranges the layers as (L+1, B, T, D).
        """
        return network.compute_layers(self.config, self.tensors(), batch, state)
