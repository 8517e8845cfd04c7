"""Semantic roles: a deep stack of highway LSTMs in alternating directions, and faultless tags.

He et al. 2017: each word's x with a mark where the predicate is, through layers of which the first
reads forward, the second backward and so on; a distribution over BIO tags at each word; the best
sequence that BIO allows. Words are learned one by one, without a chain: the constraints are for
prediction alone.

Which words are predicates the data sets say. For raw text there is a small detector beside: a
linear one over x of a word and its two neighbors, that learns along and touches nothing else.

Shape letters: B sentences, P predicates (each with its sentence), T words, E size of x with ELMo,
H cells, K tags.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.chunks import alphabet, may_follow
from elmokit.tasks.crf import viterbi
from elmokit.tasks.srl.data import Example, Frame, Prediction
from elmokit.tasks.srl.highway import HighwayLSTM
from elmokit.tasks.task import Place, Preset, Schooling
from elmokit.tasks.word_embedding import Embedded, Words

PAPER = "deep highway BiLSTM with constrained decoding (He et al. 2017)"
PLACE: Place = "input"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers of the model."""

    mark: int
    """Size of the vector that says whether a word is the predicate."""
    hidden: int
    """H."""
    layers: int
    """LSTM layers, every second of them backward."""
    dropout: float
    """Of the layers' outputs, one mask a sentence."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(mark=50, hidden=100, layers=4, dropout=0.1),
        schooling=Schooling(epochs=4, batch=32, rate=2e-3, patience=4, clip=1.0),
        dropout=0.1,
    ),
    "paper": Preset(
        sizes=Sizes(mark=100, hidden=300, layers=8, dropout=0.1),
        schooling=Schooling(
            epochs=500, batch=80, rate=1.0, patience=20, clip=1.0, optimizer="adadelta"
        ),
        dropout=0.1,
    ),
}


class Model(torch.nn.Module):
    """Words and a predicate to roles."""

    steps_KK: Tensor
    first_K: Tensor

    def __init__(self, words: Words, sizes: Sizes, facts: dict[str, Any]) -> None:
        """`facts` has the roles."""
        super().__init__()
        self.words = words
        self.tags = alphabet(facts["roles"])
        self._number = {tag: k for k, tag in enumerate(self.tags)}
        self.mark = torch.nn.Embedding(2, sizes.mark)
        self.layers = torch.nn.ModuleList(
            HighwayLSTM(sizes.hidden if k else words.dim + sizes.mark, sizes.hidden, sizes.dropout)
            for k in range(sizes.layers)
        )
        self.top = torch.nn.Linear(sizes.hidden + words.output_dim, len(self.tags))
        self.detector = torch.nn.Linear(3 * words.dim, 1)
        may = torch.tensor([[may_follow(j, k) for k in self.tags] for j in (None, *self.tags)])
        cost = torch.zeros(may.shape).masked_fill(~may, -math.inf)
        self.register_buffer("first_K", cost[0], persistent=False)
        self.register_buffer("steps_KK", cost[1:], persistent=False)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """−log P of the right tag, the mean over words; and the detector's, which stays apart."""
        embedded = self.words([example.words for example in examples])
        loss = self._detection_loss(examples, embedded)
        asked = [
            (row, example.predicate)
            for row, example in enumerate(examples)
            if example.predicate is not None and example.tags is not None
        ]
        if asked:
            scores_PTK, _ = self._scores(embedded, asked)
            right_PT = torch.full(scores_PTK.shape[:2], -1)
            for place, (row, _) in enumerate(asked):
                right = [self._number[tag] for tag in examples[row].tags or ()]
                right_PT[place, : len(right)] = torch.tensor(right)
            right_PT = right_PT.to(scores_PTK.device)
            loss = loss + functional.cross_entropy(
                scores_PTK.flatten(0, 1), right_PT.flatten(), ignore_index=-1
            )
        return loss

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """The best faultless tags for the predicate asked for, or for all that are found."""
        embedded = self.words([example.words for example in examples])
        asked: list[tuple[int, int]] = []
        found_BT = None
        for row, example in enumerate(examples):
            if example.predicate is not None:
                places = [example.predicate]
            elif example.predicates is not None:
                places = list(example.predicates)
            else:
                if found_BT is None:
                    found_BT = (self._detect(embedded.x_BTE) > 0) & embedded.mask_BT
                places = found_BT[row].nonzero()[:, 0].tolist()
            asked += [(row, place) for place in places]
        answers: list[list[Frame]] = [[] for _ in examples]
        if asked:
            paths = viterbi(
                *self._scores(embedded, asked),
                self.steps_KK,
                self.first_K,
                torch.zeros_like(self.first_K),
            )
            for (row, place), path in zip(asked, paths, strict=True):
                answers[row].append(Frame(place, tuple(self.tags[k] for k in path)))
        return [tuple(frames) for frames in answers]

    def _scores(
        self, embedded: Embedded, asked: Sequence[tuple[int, int]]
    ) -> tuple[Tensor, Tensor]:
        """The score of each tag at each word for a sentence and a predicate; and the lengths."""
        device = embedded.x_BTE.device
        row_P, place_P = torch.tensor(asked).unbind(1)
        lengths_P = embedded.lengths_B[row_P]
        T = int(lengths_P.max())
        place_T = torch.arange(T)
        # Turned, each sentence begins with its own last word, and padding stays behind.
        turned_TP = torch.where(
            place_T[:, None] < lengths_P, lengths_P - 1 - place_T[:, None], place_T[:, None]
        ).to(device)
        is_predicate_TP = (place_T[:, None] == place_P).long().to(device)
        row_P = row_P.to(device)
        column_P = torch.arange(len(row_P), device=device)
        x_TPE = embedded.x_BTE[row_P, :T].transpose(0, 1)
        h_TPH = torch.cat([x_TPE, self.mark(is_predicate_TP)], dim=-1)
        for k, layer in enumerate(self.layers):
            if k:
                h_TPH = h_TPH[turned_TP, column_P]
            h_TPH = layer(h_TPH)
        if len(self.layers) % 2 == 0:
            h_TPH = h_TPH[turned_TP, column_P]
        chosen = embedded
        if embedded.output_BTD is not None:
            chosen = embedded._replace(output_BTD=embedded.output_BTD[row_P, :T])
        return self.top(chosen.beside(h_TPH.transpose(0, 1))), lengths_P

    def _detect(self, x_BTE: Tensor) -> Tensor:
        """How much a word looks like a predicate (B, T): above 0 it is one."""
        x_BTE = x_BTE.detach()
        padded = functional.pad(x_BTE, (0, 0, 1, 1))
        around_BT3E = torch.cat([padded[:, :-2], x_BTE, padded[:, 2:]], dim=-1)
        scores_BT1: Tensor = self.detector(around_BT3E)
        return scores_BT1[:, :, 0]

    def _detection_loss(self, examples: Sequence[Example], embedded: Embedded) -> Tensor:
        """Of the detector, where the predicates of a sentence are known."""
        is_predicate_BT = torch.zeros(embedded.mask_BT.shape)
        known_B = torch.tensor([example.predicates is not None for example in examples])
        for row, example in enumerate(examples):
            is_predicate_BT[row, list(example.predicates or ())] = 1.0
        counts_BT = embedded.mask_BT & known_B[:, None].to(embedded.mask_BT.device)
        losses_BT = functional.binary_cross_entropy_with_logits(
            self._detect(embedded.x_BTE), is_predicate_BT.to(counts_BT.device), reduction="none"
        )
        return (losses_BT * counts_BT).sum() / counts_BT.sum().clamp_min(1)
