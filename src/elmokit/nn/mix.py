"""Modules that combine the layers into one vector per word for a task.

`LearnedMix` learns a weighted average, `LayerProjection` a matrix. Both take layers (L+1, …, D) and
know nothing about words. Zeros stay zeros, so that padding needs no mask, and the vector of a word
never depends on other words.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.mix import Mix
from elmokit.errors import InputError


class LearnedMix(torch.nn.Module):
    """Weighted average of the layers, γ · Σ_j softmax(s)_j · h_j, with learned s and γ."""

    def __init__(
        self,
        layers: int,
        *,
        scalars: Sequence[float] | None = None,
        gamma: float = 1.0,
        trainable: bool = True,
        only: int | None = None,
        layer_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        """Create a mix.

        Args:
            layers: Number of layers of the input, L+1.
            scalars: Initial s, before the softmax; zeros, and so equal weights, by default.
            gamma: Initial γ.
            trainable: Whether s and γ are learned.
            only: Number of a single layer to use instead of an average; then only γ is learned.
            layer_norm: Normalize the vector of each word in each layer to mean 0 and variance 1
                over its D values before weighting. Depends on no other word.
            dropout: Dropout probability of the result.
        """
        super().__init__()
        initial = [0.0] * layers if scalars is None else list(scalars)
        if layers < 1 or len(initial) != layers:
            raise InputError(
                f"scalars has {len(initial)} values; expected one for each of {layers} layers"
            )
        if only is not None and (scalars is not None or not -layers <= only < layers):
            raise InputError(
                f"only={only}: expected the number of one of {layers} layers, and no scalars"
            )
        self.only = None if only is None else only % layers
        self.layers = layers
        self.layer_norm = layer_norm
        self.scalars: torch.nn.Parameter | None = None
        if only is None:
            self.scalars = torch.nn.Parameter(torch.tensor(initial), requires_grad=trainable)
        self.gamma = torch.nn.Parameter(torch.tensor(float(gamma)), requires_grad=trainable)
        self.dropout = torch.nn.Dropout(dropout)

    @classmethod
    def from_mix(cls, mix: Mix, *, trainable: bool = True, dropout: float = 0.0) -> LearnedMix:
        """Return a module that starts from the mix that a model was saved with."""
        return cls(
            len(mix.scalars),
            scalars=mix.scalars,
            gamma=mix.gamma,
            trainable=trainable,
            dropout=dropout,
        )

    def to_mix(self) -> Mix:
        """Return the learned values, to save with a model.

        Raises `InputError` for a single layer or with layer_norm: a saved mix has neither.
        """
        if self.scalars is None or self.layer_norm:
            raise InputError("a mix of one layer, or with layer_norm, cannot be saved with a model")
        return Mix(tuple(self.scalars.tolist()), self.gamma.item())

    @property
    def shares(self) -> Tensor:
        """Weight of each layer, softmax(s), which sum to 1; (L+1,)."""
        if self.scalars is None:
            chosen = torch.tensor(self.only, device=self.gamma.device)
            return functional.one_hot(chosen, self.layers).to(self.gamma)
        return self.scalars.softmax(dim=0)

    def penalty(self, strength: float) -> Tensor:
        """Return λ‖s‖² to add to a task's loss; it pulls the layers toward equal weights.

        Args:
            strength: λ. γ is not regularized.
        """
        if self.scalars is None:
            return self.gamma.new_zeros(())
        return strength * self.scalars.square().sum()

    def forward(self, layers: Tensor) -> Tensor:
        """Combine layers (L+1, …, D) into vectors (…, D)."""
        if len(layers) != self.layers:
            raise InputError(f"the input has {len(layers)} layers; this mix expects {self.layers}")
        if self.only is not None:
            layers = layers[self.only, None]
        if self.layer_norm:
            layers = functional.layer_norm(layers, layers.shape[-1:])
        shares = self.shares if self.only is None else self.gamma.new_ones(1)
        # Layer by layer: the bits of a matrix product depend on how many words there are.
        weighted = [
            weight * layer for weight, layer in zip(self.gamma * shares, layers, strict=True)
        ]
        dropped: Tensor = self.dropout(sum(weighted[1:], weighted[0]))
        return dropped

    def extra_repr(self) -> str:
        """Return the settings that `print(module)` shows."""
        return f"layers={self.layers}, only={self.only}, layer_norm={self.layer_norm}"


class LayerProjection(torch.nn.Module):
    """Learned linear projection of all layers, concatenated.

    The 2L+1 components are the word vector and, for each LSTM layer, the forward and the backward
    output, with P values each.
    """

    def __init__(self, layers: int, dim: int, out_dim: int, *, dropout: float = 0.0) -> None:
        """Create a projection.

        Args:
            layers: Number of layers of the input, L+1.
            dim: Size of the vectors of each layer, D = 2P.
            out_dim: Size of the resulting vectors.
            dropout: Dropout probability of the result.
        """
        super().__init__()
        if layers < 1 or dim < 2 or dim % 2 or out_dim < 1:
            raise InputError(
                f"LayerProjection({layers}, {dim}, {out_dim}): expected at least one layer, an "
                "even size (both directions), and an output size of at least 1"
            )
        self.layers, self.dim, self.out_dim = layers, dim, out_dim
        components = 2 * layers - 1
        self.matrix = torch.nn.Parameter(torch.empty(components * dim // 2, out_dim))
        torch.nn.init.xavier_uniform_(self.matrix)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, layers: Tensor) -> Tensor:
        """Combine layers (L+1, …, D) into vectors (…, out_dim)."""
        if len(layers) != self.layers or layers.shape[-1] != self.dim:
            raise InputError(
                f"the layers have the shape {tuple(layers.shape)}; this projection expects "
                f"({self.layers}, …, {self.dim})"
            )
        word_vector = layers[0, ..., : self.dim // 2]  # layer 0 contains it twice
        joined = torch.cat([word_vector, *layers[1:]], dim=-1)
        dropped: Tensor = self.dropout(joined @ self.matrix)
        return dropped

    def extra_repr(self) -> str:
        """Return the settings that `print(module)` shows."""
        return f"layers={self.layers}, dim={self.dim}, out_dim={self.out_dim}"
