"""Recurrent layers of task models: sentences of different lengths, dropout with one mask per text.

Shape letters: B sentences, T words, E size of the input, H cells of a direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit.nn.bilstm import bidirectional_lstm, kernel_runs, kernel_weights


class LockedDropout(torch.nn.Module):
    """Dropout with the same mask for all words of a sentence (Gal & Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        """Create the layer; `rate` is the fraction of a vector's numbers that is dropped."""
        super().__init__()
        self.rate = rate

    def forward(self, x_BTE: Tensor) -> Tensor:
        """Return the input with numbers dropped and the others scaled, in training only."""
        if not self.training or not self.rate:
            return x_BTE
        kept = 1 - self.rate
        mask = x_BTE.new_empty(len(x_BTE), 1, x_BTE.shape[2]).bernoulli_(kept).div_(kept)
        return x_BTE * mask


class BiLSTM(torch.nn.Module):
    """A stack of bidirectional LSTM layers that ignores padding."""

    def __init__(self, size: int, hidden: int, layers: int = 1, dropout: float = 0.0) -> None:
        """Create the layers.

        Args:
            size: Size E of the input.
            hidden: Number of cells H of one direction.
            layers: Number of layers.
            dropout: Locked dropout before each layer.
        """
        super().__init__()
        self.dim = 2 * hidden
        self.dropout = LockedDropout(dropout)
        self.layers = torch.nn.ModuleList(
            torch.nn.LSTM(size if k == 0 else self.dim, hidden, bidirectional=True)
            for k in range(layers)
        )
        _initialize(self)

    def forward(self, x_BTE: Tensor, lengths_B: Tensor) -> Tensor:
        """Map (B, T, E) to (B, T, 2H), zero at padding; every sentence has at least one word."""
        for layer in cast(Iterable[torch.nn.LSTM], self.layers):
            x_BTE = self.dropout(x_BTE)
            if kernel_runs(layer, x_BTE):
                directions = kernel_weights(layer), kernel_weights(layer, "_reverse")
                x_BTE = bidirectional_lstm(*directions, x_BTE, lengths_B)
                continue
            packed = pack_padded_sequence(
                x_BTE, lengths_B.cpu(), batch_first=True, enforce_sorted=False
            )
            x_BTE = pad_packed_sequence(
                layer(packed)[0], batch_first=True, total_length=x_BTE.shape[1]
            )[0]
        return x_BTE


class LongBiLSTM(torch.nn.Module):
    """One bidirectional layer for long texts of similar lengths.

    Where PyTorch runs it, both directions go from left to right over all positions, the second one
    on texts that are reversed within their length, since packing would cost more.
    """

    def __init__(self, size: int, hidden: int) -> None:
        """Create the layer for inputs of `size` and outputs of 2 · `hidden` numbers."""
        super().__init__()
        self.forth = torch.nn.LSTM(size, hidden, batch_first=True)
        self.back = torch.nn.LSTM(size, hidden, batch_first=True)
        _initialize(self)

    def forward(self, x_BTE: Tensor, lengths_B: Tensor) -> Tensor:
        """Map (B, T, E) to (B, T, 2H), zero at padding."""
        if kernel_runs(self.forth, x_BTE):
            directions = kernel_weights(self.forth), kernel_weights(self.back)
            return bidirectional_lstm(*directions, x_BTE, lengths_B)
        batch, words, _ = x_BTE.shape
        positions_T = torch.arange(words)
        mask_BT = positions_T < lengths_B[:, None]
        reversed_BT = torch.where(mask_BT, lengths_B[:, None] - 1 - positions_T, positions_T)
        rows_N = (reversed_BT + words * torch.arange(batch)[:, None]).flatten().to(x_BTE.device)

        def reverse(a_BTE: Tensor) -> Tensor:
            return a_BTE.flatten(0, 1).index_select(0, rows_N).view_as(a_BTE)

        forth_BTH, _ = self.forth(x_BTE)
        back_BTH, _ = self.back(reverse(x_BTE))
        both = torch.cat([forth_BTH, reverse(back_BTH)], -1)
        return both * mask_BT[..., None].to(x_BTE.device)


def _initialize(layer: torch.nn.Module) -> None:
    """Set the initial weights of LSTMs."""
    for name, weights in layer.named_parameters():
        if "weight_ih" in name:
            torch.nn.init.xavier_uniform_(weights)
        elif "weight_hh" in name:
            for gate in weights.chunk(4):
                torch.nn.init.orthogonal_(gate)
        elif "bias_ih" in name:
            torch.nn.init.zeros_(weights)
            torch.nn.init.ones_(weights.chunk(4)[1])  # the forget gate: remember at first
        else:
            torch.nn.init.zeros_(weights)
