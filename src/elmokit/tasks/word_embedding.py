"""Where a task model begins: words to vectors, x alone or [x ; ELMo]; and [h ; ELMo] at its top.

x is a static vector from a file, or is learned. Every place has a mix of its own. A task model
cannot tell where its vectors come from: the biLM may be frozen, its layers kept on disk, or learn.

Shape letters: B sentences, T words, E size of x with ELMo, D size of ELMo, L LSTM layers,
N words of all sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from elmokit.errors import InputError
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.nn.mix import Mix, Projection
from elmokit.tasks.layers import Layers
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.task import Place

Mixing = Literal["all", "last", "projection"]
"""A weighted average of all layers, the top layer alone, or a learned matrix over all of them."""

LEARNED_DIM = 50
LEAST_COUNT = 2
"""How often a word must occur in the training set to get a vector of its own."""
PROJECTED_DIM = 256


class Embedded(NamedTuple):
    """What `Words` gives for a batch."""

    x_BTE: Tensor
    """For the input: [x ; ELMo], or x; zero at padding."""
    mask_BT: Tensor
    """True where there is a word."""
    lengths_B: Tensor
    """How many words each sentence has; on the CPU, as packing wants it."""
    output_BTD: Tensor | None
    """ELMo for the output; None if it is not asked for there."""

    def beside(self, h_BTH: Tensor) -> Tensor:
        """[h ; ELMo] at the top of a model, or h alone."""
        if self.output_BTD is None:
            return h_BTH
        return torch.cat([h_BTH, self.output_BTD], dim=-1)


class Words(torch.nn.Module):
    """The first layer of every task model."""

    def __init__(
        self,
        x: StaticVectors | Sequence[str],
        elmo: Layers | ElmoEmbedding | None = None,
        *,
        place: Place = "input",
        mixing: Mixing = "all",
        dropout: float = 0.0,
    ) -> None:
        """Make the layer.

        Args:
            x: vectors that stay as they are, or the words (see `frequent`) to learn vectors for.
            elmo: where the layers of a biLM come from; none is the baseline.
            place: where the task model gets ELMo.
            mixing: how the layers become one vector.
            dropout: of x, and of ELMo at each place.
        """
        super().__init__()
        if mixing not in get_args(Mixing):
            raise InputError(f"layers is {mixing!r}; expected one of {', '.join(get_args(Mixing))}")
        if place not in get_args(Place):
            raise InputError(f"place is {place!r}; expected one of {', '.join(get_args(Place))}")
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
            for where in ("input", "output"):
                if place in (where, "both"):
                    self.mixes[where] = _mix(elmo, mixing, dropout)
            size = PROJECTED_DIM if mixing == "projection" else elmo.dim
            self.dim += size * ("input" in self.mixes)
            self.output_dim = size * ("output" in self.mixes)

    def forward(self, texts: Sequence[Sequence[str]]) -> Embedded:
        """Vectors for the words of sentences, each of at least one word."""
        lengths = [len(words) for words in texts]
        if not texts or not all(lengths):
            raise InputError("a text without words came to a task model; expected at least one")
        lengths_B = torch.tensor(lengths)
        mask_BT = torch.arange(max(lengths)) < lengths_B[:, None]
        device = self._device
        parts = [self.dropout(self._x(texts, mask_BT))]
        output_BTD = None
        if self.elmo is not None:
            layers_LBTD = self.elmo.layers(texts).to(device)
            if "input" in self.mixes:
                parts.append(self.mixes["input"](layers_LBTD))
            if "output" in self.mixes:
                output_BTD = self.mixes["output"](layers_LBTD)
        x_BTE = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return Embedded(x_BTE, mask_BT.to(device), lengths_B, output_BTD)

    def penalty(self, strength: float) -> Tensor:
        """λ‖w‖² over all mixes."""
        zero = torch.zeros((), device=self._device)
        return sum((m.penalty(strength) for m in self.mixes.values() if isinstance(m, Mix)), zero)

    def weights(self) -> dict[str, dict[str, object]]:
        """What each place has learned: the layers' shares (softmax-normalized s_j) and γ."""
        return {
            where: {"shares": mix.shares.tolist(), "gamma": mix.gamma.item()}
            for where, mix in self.mixes.items()
            if isinstance(mix, Mix)
        }

    def _x(self, texts: Sequence[Sequence[str]], mask_BT: Tensor) -> Tensor:
        flat = [word for words in texts for word in words]
        if self.static is not None:
            x_NE = torch.from_numpy(self.static.of(flat)).to(self._device)
        else:
            numbers = torch.tensor([self._number.get(word.lower(), 0) for word in flat])
            assert self.learned is not None  # one of the two is there
            x_NE = self.learned(numbers.to(self._device))
        x_BTE = x_NE.new_zeros(*mask_BT.shape, x_NE.shape[1])
        x_BTE[mask_BT.to(x_NE.device)] = x_NE
        return x_BTE

    @property
    def _device(self) -> torch.device:
        for parameter in self.parameters():
            return parameter.device
        return torch.device("cpu")


def in_rows(
    words: Callable[[Sequence[Sequence[str]]], Embedded],
    texts: Sequence[Sequence[str]],
    together: int,
) -> tuple[Tensor, Tensor | None]:
    """x of all words of all texts, one after another (N, E), and ELMo for the output (N, D).

    For texts that are parts of a longer one. So many of similar lengths are asked for together: one
    long text would make the others mostly padding.
    """
    order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
    x, output = [], []
    for start in range(0, len(order), together):
        embedded = words([texts[k] for k in order[start : start + together]])
        x.append(embedded.x_BTE[embedded.mask_BT])
        if embedded.output_BTD is not None:
            output.append(embedded.output_BTD[embedded.mask_BT])
    first = [0, *accumulate(map(len, texts))]
    placed = torch.tensor([n for k in order for n in range(first[k], first[k + 1])])
    back_N = placed.argsort().to(x[0].device)
    return torch.cat(x)[back_N], torch.cat(output)[back_N] if output else None


def frequent(texts: Iterable[Sequence[str]]) -> list[str]:
    """The words of a training set that vectors can be learned for; lower-cased, sorted."""
    counts = Counter(word.lower() for words in texts for word in words)
    return sorted(word for word, count in counts.items() if count >= LEAST_COUNT)


def _mix(elmo: Layers | ElmoEmbedding, mixing: Mixing, dropout: float) -> Mix | Projection:
    if mixing == "projection":
        return Projection(elmo.config.layers, elmo.dim, PROJECTED_DIM, dropout=dropout)
    only = -1 if mixing == "last" else None
    return Mix(elmo.config.layers, only=only, dropout=dropout)
