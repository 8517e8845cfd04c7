"""A word's vector from its characters, learned with the task: where case and endings come in.

Shape letters: N words, U distinct words, C characters, F filters of each window.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from elmokit.text.characters import BYTE_CHARACTERS, PADDING, encode_words


class Characters(torch.nn.Module):
    """Filters over windows of a word's bytes; of each the largest value in the word."""

    def __init__(
        self, filters: int, *, windows: Sequence[int] = (3,), size: int, longest: int
    ) -> None:
        """Make the layer.

        Args:
            filters: F.
            windows: how many characters a filter sees; F filters for each.
            size: of a character's vector.
            longest: bytes of a word that are read, the marks of its beginning and end included.
        """
        super().__init__()
        self.dim = filters * len(windows)
        self.longest = longest
        self.table = torch.nn.Embedding(BYTE_CHARACTERS, size, padding_idx=PADDING)
        self.windows = torch.nn.ModuleList(
            torch.nn.Conv1d(size, filters, window, padding=window // 2) for window in windows
        )

    def forward(self, words: Sequence[str]) -> Tensor:
        """(N, F for each window); each distinct word is computed once, and by itself."""
        number: dict[str, int] = {}
        rows_N = [number.setdefault(word, len(number)) for word in words]
        ids_UC, lengths_U = encode_words(list(number), self.longest)
        device = self.table.weight.device
        ids = torch.from_numpy(ids_UC[:, : lengths_U.max()]).long().to(device)
        padding_U1C = (ids == PADDING)[:, None, :]
        table_UEC = self.table(ids).mT
        vectors_UF = torch.cat(
            [
                # A window of an even size fits once more than there are characters.
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
