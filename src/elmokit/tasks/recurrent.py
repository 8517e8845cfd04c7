"""Recurrent layers as task models use them: sentences of several lengths, dropout that stays put.

Shape letters: B sentences, T words, E size of what comes in, H cells of a direction.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class LockedDropout(torch.nn.Module):
    """Dropout with one mask for all words of a sentence (Gal & Ghahramani 2016)."""

    def __init__(self, share: float) -> None:
        """`share` of a vector's numbers is dropped in training, the same at each word."""
        super().__init__()
        self.share = share

    def forward(self, x_BTE: Tensor) -> Tensor:
        """Drop, and scale what is left."""
        if not self.training or not self.share:
            return x_BTE
        kept = 1 - self.share
        mask = x_BTE.new_empty(len(x_BTE), 1, x_BTE.shape[2]).bernoulli_(kept).div_(kept)
        return x_BTE * mask


class BiLSTM(torch.nn.Module):
    """A stack of bidirectional LSTM layers; padding is neither read nor written."""

    def __init__(self, size: int, hidden: int, layers: int = 1, dropout: float = 0.0) -> None:
        """`size` is E; `hidden` the cells of one direction; dropout (locked) before each layer."""
        super().__init__()
        self.dim = 2 * hidden
        self.dropout = LockedDropout(dropout)
        self.layers = torch.nn.ModuleList(
            torch.nn.LSTM(size if k == 0 else self.dim, hidden, bidirectional=True)
            for k in range(layers)
        )
        _begin(self)

    def forward(self, x_BTE: Tensor, lengths_B: Tensor) -> Tensor:
        """(B, T, E) to (B, T, 2H), zero at padding; every sentence has at least one word."""
        for layer in self.layers:
            packed = pack_padded_sequence(
                self.dropout(x_BTE), lengths_B.cpu(), batch_first=True, enforce_sorted=False
            )
            x_BTE = pad_packed_sequence(
                layer(packed)[0], batch_first=True, total_length=x_BTE.shape[1]
            )[0]
        return x_BTE


class LongBiLSTM(torch.nn.Module):
    """One such layer for long texts of similar lengths, where packing costs more than padding.

    Both directions run from left to right over all places, the second on texts turned round within
    their length.
    """

    def __init__(self, size: int, hidden: int) -> None:
        """`size` comes in, 2 · `hidden` goes out."""
        super().__init__()
        self.forth = torch.nn.LSTM(size, hidden, batch_first=True)
        self.back = torch.nn.LSTM(size, hidden, batch_first=True)
        _begin(self)

    def forward(self, x_BTE: Tensor, lengths_B: Tensor) -> Tensor:
        """(B, T, E) to (B, T, 2H), zero at padding."""
        batch, words, _ = x_BTE.shape
        places_T = torch.arange(words)
        there_BT = places_T < lengths_B[:, None]
        turned_BT = torch.where(there_BT, lengths_B[:, None] - 1 - places_T, places_T)
        rows_N = (turned_BT + words * torch.arange(batch)[:, None]).flatten().to(x_BTE.device)

        def turn(a_BTE: Tensor) -> Tensor:
            return a_BTE.flatten(0, 1).index_select(0, rows_N).view_as(a_BTE)

        forth_BTH, _ = self.forth(x_BTE)
        back_BTH, _ = self.back(turn(x_BTE))
        both = torch.cat([forth_BTH, turn(back_BTH)], -1)
        return both * there_BT[..., None].to(x_BTE.device)


def _begin(layer: torch.nn.Module) -> None:
    """The numbers that an LSTM begins with."""
    for name, weights in layer.named_parameters():
        if "weight_ih" in name:
            torch.nn.init.xavier_uniform_(weights)
        elif "weight_hh" in name:
            for gate in weights.chunk(4):
                torch.nn.init.orthogonal_(gate)
        elif "bias_ih" in name:
            torch.nn.init.zeros_(weights)
            torch.nn.init.ones_(weights.chunk(4)[1])  # of the forget gate: remember at first
        else:
            torch.nn.init.zeros_(weights)
