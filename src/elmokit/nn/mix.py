"""How a task makes one vector of the layers: `Mix` learns an average, `Projection` a matrix.

Both take the layers (L+1, …, D) and know nothing about words. What is zero stays zero, so that
padding needs no mask, and a word's vector never depends on the words beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm import mix as numbers
from elmokit.errors import InputError


class Mix(torch.nn.Module):
    """ELMo = γ · Σ_j softmax(s)_j · h_j, with learned s and γ."""

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
        """Make a mix.

        Args:
            layers: L+1, how many layers come in.
            scalars: where s starts, before the softmax; all equal by default.
            gamma: where γ starts.
            trainable: false keeps s and γ as they are.
            only: the number of one layer that alone counts; then only γ is learned.
            layer_norm: bring every word's vector to mean 0 and variance 1 over its D numbers, layer
                by layer, before they are weighted. It depends on no other word.
            dropout: the share of the result's numbers that is set to 0 in training.
        """
        super().__init__()
        start = [0.0] * layers if scalars is None else list(scalars)
        if layers < 1 or len(start) != layers:
            raise InputError(f"scalars has {len(start)} numbers; expected one for each of {layers}")
        if only is not None and (scalars is not None or not -layers <= only < layers):
            raise InputError(
                f"only={only}: expected the number of one of {layers} layers, and then no scalars"
            )
        self.only = None if only is None else only % layers
        self.layers = layers
        self.layer_norm = layer_norm
        self.scalars: torch.nn.Parameter | None = None
        if only is None:
            self.scalars = torch.nn.Parameter(torch.tensor(start), requires_grad=trainable)
        self.gamma = torch.nn.Parameter(torch.tensor(float(gamma)), requires_grad=trainable)
        self.dropout = torch.nn.Dropout(dropout)

    @classmethod
    def of(cls, mix: numbers.Mix, *, trainable: bool = True, dropout: float = 0.0) -> Mix:
        """From the numbers that a model was saved with."""
        return cls(
            len(mix.scalars),
            scalars=mix.scalars,
            gamma=mix.gamma,
            trainable=trainable,
            dropout=dropout,
        )

    def to_numbers(self) -> numbers.Mix:
        """What was learned, to save with a model. A LayerNorm and a single layer have no place."""
        if self.scalars is None or self.layer_norm:
            raise InputError("a mix of one layer, or with layer_norm, cannot be saved with a model")
        return numbers.Mix(tuple(self.scalars.tolist()), self.gamma.item())

    @property
    def shares(self) -> Tensor:
        """softmax(s): what part of the whole each layer is, (L+1,)."""
        if self.scalars is None:
            chosen = torch.tensor(self.only, device=self.gamma.device)
            return functional.one_hot(chosen, self.layers).to(self.gamma)
        return self.scalars.softmax(dim=0)

    def penalty(self, strength: float) -> Tensor:
        """λ‖w‖²: added to a task's loss it draws the layers to equal shares. γ is free."""
        if self.scalars is None:
            return self.gamma.new_zeros(())
        return strength * self.scalars.square().sum()

    def forward(self, layers: Tensor) -> Tensor:
        """(L+1, …, D) to (…, D)."""
        if len(layers) != self.layers:
            raise InputError(f"{len(layers)} layers came in; this mix was made for {self.layers}")
        if self.only is not None:
            layers = layers[self.only, None]
        if self.layer_norm:
            layers = functional.layer_norm(layers, layers.shape[-1:])
        shares = self.shares if self.only is None else self.gamma.new_ones(1)
        mixed = torch.einsum("l,l...->...", self.gamma * shares, layers)
        dropped: Tensor = self.dropout(mixed)
        return dropped

    def extra_repr(self) -> str:
        """For `print`."""
        return f"layers={self.layers}, only={self.only}, layer_norm={self.layer_norm}"


class Projection(torch.nn.Module):
    """All 2L+1 components side by side, multiplied by a learned matrix.

    The components are the word vector and, of every LSTM layer, the forward and the backward
    output, P numbers each.
    """

    def __init__(self, layers: int, dim: int, out_dim: int, *, dropout: float = 0.0) -> None:
        """`layers` is L+1, `dim` the D = 2P of each, `out_dim` what comes out."""
        super().__init__()
        if layers < 1 or dim < 2 or dim % 2 or out_dim < 1:
            raise InputError(
                f"Projection({layers}, {dim}, {out_dim}): expected at least one layer, an even "
                "size (both directions) and at least one number out"
            )
        self.layers, self.dim, self.out_dim = layers, dim, out_dim
        components = 2 * layers - 1
        self.matrix = torch.nn.Parameter(torch.empty(components * dim // 2, out_dim))
        torch.nn.init.xavier_uniform_(self.matrix)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, layers: Tensor) -> Tensor:
        """(L+1, …, D) to (…, out_dim)."""
        if len(layers) != self.layers or layers.shape[-1] != self.dim:
            raise InputError(
                f"layers of shape {tuple(layers.shape)} came in; this projection was made for "
                f"({self.layers}, …, {self.dim})"
            )
        word_vector = layers[0, ..., : self.dim // 2]  # layer 0 holds it twice
        joined = torch.cat([word_vector, *layers[1:]], dim=-1)
        dropped: Tensor = self.dropout(joined @ self.matrix)
        return dropped

    def extra_repr(self) -> str:
        """For `print`."""
        return f"layers={self.layers}, dim={self.dim}, out_dim={self.out_dim}"
