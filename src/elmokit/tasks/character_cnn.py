"""A word's vector from its characters, learned with the task: where case and endings come in.

Shape letters: N words, U distinct words, C characters, F filters of each window.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from elmokit.text.characters import BYTE_CHARACTERS, PADDING, encode_words


class CharacterCNN(torch.nn.Module):
    """A convolution over the bytes of a word, with max pooling over the word and ReLU."""

    def __init__(
        self, filters: int, *, windows: Sequence[int] = (3,), size: int, longest: int
    ) -> None:
        """Create the layer.

        Args:
            filters: Number of filters F per window.
            windows: Widths of the filters, in bytes; there are F filters of each width.
            size: Size of a character's vector.
            longest: Bytes of a word that are read, including the marks of its beginning and end.
        """
        super().__init__()
        self.dim = filters * len(windows)
        self.longest = longest
        self.table = torch.nn.Embedding(BYTE_CHARACTERS, size, padding_idx=PADDING)
        self.windows = torch.nn.ModuleList(
            torch.nn.Conv1d(size, filters, window, padding=window // 2) for window in windows
        )

    def forward(self, words: Sequence[str]) -> Tensor:
        """Return (N, F · windows); each distinct word is computed once, independently of others."""
        number: dict[str, int] = {}
        rows_N = [number.setdefault(word, len(number)) for word in words]
        ids_UC, lengths_U = encode_words(list(number), self.longest)
        device = self.table.weight.device
        ids = torch.from_numpy(ids_UC[:, : lengths_U.max()]).long().to(device)
        padding_U1C = (ids == PADDING)[:, None, :]
        table_UEC = self.table(ids).mT
        vectors_UF = torch.cat(
            [
                # A window of an even width fits once more than there are characters.
                window(table_UEC)[..., : ids.shape[1]].masked_fill(padding_U1C, -torch.inf).amax(2)
                for window in self.windows
            ],
            dim=1,
        ).relu()
        # `embedding` adds the gradients of equal words faster than indexing does.
        vectors_NF: Tensor = torch.nn.functional.embedding(
            torch.tensor(rows_N, device=device), vectors_UF
        )
        return vectors_NF
