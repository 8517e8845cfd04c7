"""The first layer of every task model: words to vectors, x alone or [x ; ELMo].

x is a static vector from a file, or is learned. Where the model uses ELMo at its output as well,
[h ; ELMo] is made here too. Each place where ELMo enters has a layer mix of its own. A task model
cannot tell where its vectors come from: the biLM may be frozen, with its layers stored on disk, or
be trained with the task.

Shape letters: B sentences, T words, E size of x with ELMo, D size of ELMo, L LSTM layers,
N words of all sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from elmokit.errors import InputError
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.nn.mix import LayerProjection, LearnedMix
from elmokit.tasks.layer_store import LayerStore
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.task import Mixing, Placement

LEARNED_DIM = 50
"""Size of a learned word vector."""
MIN_COUNT = 2
"""Occurrences in the training set that a word needs to get a learned vector of its own."""
PROJECTED_DIM = 256
"""Size of ELMo after a learned projection of all layers."""


class EmbeddedBatch(NamedTuple):
    """The vectors that `WordEmbedding` returns for a batch of sentences."""

    x_BTE: Tensor
    """Input of the model: [x ; ELMo], or x alone; zero at padding."""
    mask_BT: Tensor
    """True where there is a word."""
    lengths_B: Tensor
    """Number of words of each sentence; on the CPU, as packing needs it."""
    output_BTD: Tensor | None
    """ELMo for the output of the model; None if the model does not use it there."""

    def append_elmo(self, h_BTH: Tensor) -> Tensor:
        """Return [h ; ELMo] for the output of the model, or h alone if ELMo is not used there."""
        if self.output_BTD is None:
            return h_BTH
        return torch.cat([h_BTH, self.output_BTD], dim=-1)


class WordEmbedding(torch.nn.Module):
    """Words to vectors: static or learned word vectors, with ELMo beside them."""

    def __init__(
        self,
        x: StaticVectors | Sequence[str],
        elmo: LayerStore | ElmoEmbedding | None = None,
        *,
        placement: Placement = "input",
        mixing: Mixing = "all",
        dropout: float = 0.0,
    ) -> None:
        """Create the layer.

        Args:
            x: Static vectors, or the words to learn vectors for (see `frequent_words`).
            elmo: Source of the layers of a biLM; None for the baseline without ELMo.
            placement: Where the task model uses ELMo.
            mixing: How the layers become one vector.
            dropout: Dropout of x, and of ELMo at each place where it enters.
        """
        super().__init__()
        for name, value, allowed in (
            ("mixing", mixing, get_args(Mixing)),
            ("placement", placement, get_args(Placement)),
        ):
            if value not in allowed:
                raise InputError(f"{name} is {value!r}; expected one of {', '.join(allowed)}")
        self.static, self.learned = None, None
        if isinstance(x, StaticVectors):
            self.static, dim = x, x.dim
        else:
            self._number = {word: k for k, word in enumerate(x, start=1)}
            self.learned = torch.nn.Embedding(len(x) + 1, LEARNED_DIM)
            dim = LEARNED_DIM
        self.dropout = torch.nn.Dropout(dropout)
        self.elmo = elmo
        self.mixes = torch.nn.ModuleDict()
        self.dim, self.output_dim = dim, 0
        if elmo is not None:
            for place in ("input", "output"):
                if placement in (place, "both"):
                    self.mixes[place] = _make_mix(elmo, mixing, dropout)
            size = PROJECTED_DIM if mixing == "projection" else elmo.dim
            self.dim += size * ("input" in self.mixes)
            self.output_dim = size * ("output" in self.mixes)

    def forward(self, texts: Sequence[Sequence[str]]) -> EmbeddedBatch:
        """Return the vectors of the words of sentences, each of at least one word."""
        lengths = [len(words) for words in texts]
        if not texts or not all(lengths):
            raise InputError("a text without words cannot be embedded; expected at least one word")
        lengths_B = torch.tensor(lengths)
        mask_BT = torch.arange(max(lengths)) < lengths_B[:, None]
        device = self._device
        parts = [self.dropout(self._embed_words(texts, mask_BT))]
        output_BTD = None
        if self.elmo is not None:
            layers_LBTD = self.elmo.layers(texts).to(device)
            if "input" in self.mixes:
                parts.append(self.mixes["input"](layers_LBTD))
            if "output" in self.mixes:
                output_BTD = self.mixes["output"](layers_LBTD)
        x_BTE = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return EmbeddedBatch(x_BTE, mask_BT.to(device), lengths_B, output_BTD)

    def penalty(self, strength: float) -> Tensor:
        """Return the penalty λ‖w‖² over all mixes; `strength` is λ."""
        zero = torch.zeros((), device=self._device)
        return sum(
            (m.penalty(strength) for m in self.mixes.values() if isinstance(m, LearnedMix)), zero
        )

    def layer_weights(self) -> dict[str, dict[str, object]]:
        """Return the learned weights of each place (`"input"`, `"output"`).

        `shares` are the softmax-normalized s_j of the layers, `gamma` is γ.
        """
        return {
            place: {"shares": mix.shares.tolist(), "gamma": mix.gamma.item()}
            for place, mix in self.mixes.items()
            if isinstance(mix, LearnedMix)
        }

    def _embed_words(self, texts: Sequence[Sequence[str]], mask_BT: Tensor) -> Tensor:
        flat = [word for words in texts for word in words]
        if self.static is not None:
            x_NE = torch.from_numpy(self.static.lookup(flat)).to(self._device)
        else:
            numbers = torch.tensor([self._number.get(word.lower(), 0) for word in flat])
            assert self.learned is not None  # one of the two exists
            x_NE = self.learned(numbers.to(self._device))
        x_BTE = x_NE.new_zeros(*mask_BT.shape, x_NE.shape[1])
        x_BTE[mask_BT.to(x_NE.device)] = x_NE
        return x_BTE

    @property
    def _device(self) -> torch.device:
        for parameter in self.parameters():
            return parameter.device
        return torch.device("cpu")


def embed_flat(
    embed: Callable[[Sequence[Sequence[str]]], EmbeddedBatch],
    texts: Sequence[Sequence[str]],
    batch: int,
) -> tuple[Tensor, Tensor | None]:
    """Return the vectors of all words of all texts, one after another, without padding.

    For texts that are parts of a longer one. Texts of similar lengths are embedded together,
    because one long text would make the others mostly padding.

    Args:
        embed: The word embedding.
        texts: The texts, each of at least one word.
        batch: Number of texts that are embedded together.

    Returns:
        x, (N, E), and ELMo for the output, (N, D), or None if the model does not use it there.
    """
    order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
    x, output = [], []
    for start in range(0, len(order), batch):
        embedded = embed([texts[k] for k in order[start : start + batch]])
        x.append(embedded.x_BTE[embedded.mask_BT])
        if embedded.output_BTD is not None:
            output.append(embedded.output_BTD[embedded.mask_BT])
    first = [0, *accumulate(map(len, texts))]
    positions = torch.tensor([n for k in order for n in range(first[k], first[k + 1])])
    back_N = positions.argsort().to(x[0].device)
    return torch.cat(x)[back_N], torch.cat(output)[back_N] if output else None


def frequent_words(texts: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of a training set to learn vectors for, in lowercase and sorted."""
    counts = Counter(word.lower() for words in texts for word in words)
    return sorted(word for word, count in counts.items() if count >= MIN_COUNT)


def _make_mix(
    elmo: LayerStore | ElmoEmbedding, mixing: Mixing, dropout: float
) -> LearnedMix | LayerProjection:
    if mixing == "projection":
        return LayerProjection(elmo.config.layers, elmo.dim, PROJECTED_DIM, dropout=dropout)
    only = -1 if mixing == "last" else None
    return LearnedMix(elmo.config.layers, only=only, dropout=dropout)
