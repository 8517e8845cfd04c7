"""Semantic roles: a deep stack of highway LSTMs in alternating directions, with constrained tags.

He et al. 2017: each word's x with a mark of the predicate, through layers of which the first runs
forward, the second backward and so on; a distribution over BIO tags at each word; the best sequence
that BIO allows. The loss is per word, without a chain: the constraints are for prediction only.

Datasets say which words are predicates. For raw text there is a small detector as well: a linear
one over x of a word and its two neighbors, which is trained along and affects nothing else.

Shape letters: B sentences, P predicates (each with its sentence), T words, E size of x with ELMo,
H cells, K tags.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.crf import TagRun, span_probabilities, viterbi
from elmokit.tasks.srl.data import Example, Frame, Prediction
from elmokit.tasks.srl.highway import HighwayLSTM
from elmokit.tasks.tag_schemes import all_tags, may_follow, tags_to_spans
from elmokit.tasks.task import Preset, TrainingConfig
from elmokit.tasks.word_embedding import EmbeddedBatch, WordEmbedding


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Hyperparameters of the model."""

    mark: int
    """Size of the vector that marks whether a word is the predicate."""
    hidden: int
    """Number of cells H of a layer."""
    layers: int
    """Number of LSTM layers; every second one runs backward."""
    dropout: float
    """Dropout of the layers' outputs, with one mask per sentence."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(mark=50, hidden=100, layers=4, dropout=0.1),
        training=TrainingConfig(epochs=10, batch=32, rate=2e-3, patience=5, clip=1.0),
        dropout=0.1,
        total_steps=13_000,
    ),
    "paper": Preset(
        sizes=Sizes(mark=100, hidden=300, layers=8, dropout=0.1),
        training=TrainingConfig(
            epochs=500, batch=80, rate=1.0, patience=20, clip=1.0, optimizer="adadelta"
        ),
        dropout=0.1,
    ),
}


class Model(torch.nn.Module):
    """The network: sentences with a predicate to tags of roles."""

    steps_KK: Tensor
    first_K: Tensor

    def __init__(self, words: WordEmbedding, sizes: Sizes, label_set: dict[str, Any]) -> None:
        """Create the network; `label_set["roles"]` are the roles."""
        super().__init__()
        self.words = words
        self.tags = all_tags(label_set["roles"])
        self._number = {tag: k for k, tag in enumerate(self.tags)}
        self.mark = torch.nn.Embedding(2, sizes.mark)
        self.layers = torch.nn.ModuleList(
            HighwayLSTM(sizes.hidden if k else words.dim + sizes.mark, sizes.hidden, sizes.dropout)
            for k in range(sizes.layers)
        )
        self.top = torch.nn.Linear(sizes.hidden + words.output_dim, len(self.tags))
        self.detector = torch.nn.Linear(3 * words.dim, 1)
        allowed = torch.tensor([[may_follow(j, k) for k in self.tags] for j in (None, *self.tags)])
        scores = torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf)
        self.register_buffer("first_K", scores[0], persistent=False)
        self.register_buffer("steps_KK", scores[1:], persistent=False)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return −log P of the gold tag, the mean over words, plus the loss of the detector."""
        embedded = self.words([example.words for example in examples])
        loss = self._detection_loss(examples, embedded)
        predicates = [
            (row, example.predicate)
            for row, example in enumerate(examples)
            if example.predicate is not None and example.tags is not None
        ]
        if predicates:
            scores_PTK, _ = self._scores(embedded, predicates)
            gold_PT = torch.full(scores_PTK.shape[:2], -1)
            for p, (row, _) in enumerate(predicates):
                gold = [self._number[tag] for tag in examples[row].tags or ()]
                gold_PT[p, : len(gold)] = torch.tensor(gold)
            gold_PT = gold_PT.to(scores_PTK.device)
            loss = loss + functional.cross_entropy(
                scores_PTK.flatten(0, 1), gold_PT.flatten(), ignore_index=-1
            )
        return loss

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the best well-formed tags for the named predicate, or for all of the sentence."""
        embedded = self.words([example.words for example in examples])
        predicates: list[tuple[int, int]] = []
        detected_BT = None
        for row, example in enumerate(examples):
            if example.predicate is not None:
                positions = [example.predicate]
            elif example.predicates is not None:
                positions = list(example.predicates)
            else:
                if detected_BT is None:
                    detected_BT = (self._detect(embedded.x_BTE) > 0) & embedded.mask_BT
                positions = detected_BT[row].nonzero()[:, 0].tolist()
            predicates += [(row, position) for position in positions]
        frames: list[list[Frame]] = [[] for _ in examples]
        if predicates:
            chain = self.steps_KK, self.first_K, torch.zeros_like(self.first_K)
            scores_PTK, lengths_P = self._scores(embedded, predicates)
            paths = viterbi(scores_PTK, lengths_P, *chain)
            tags = [tuple(self.tags[k] for k in path) for path in paths]
            spans = [tags_to_spans(each) for each in tags]
            runs = [
                TagRun(p, s.start, paths[p][s.start : s.end], self._number[f"I-{s.type}"])
                for p in range(len(paths))
                for s in spans[p]
            ]
            found = iter(span_probabilities(scores_PTK, lengths_P, *chain, runs))
            for p, (row, position) in enumerate(predicates):
                frames[row].append(Frame(position, tags[p], tuple(islice(found, len(spans[p])))))
        return [tuple(each) for each in frames]

    def _scores(
        self, embedded: EmbeddedBatch, predicates: Sequence[tuple[int, int]]
    ) -> tuple[Tensor, Tensor]:
        """Return the score of each tag at each word, (P, T, K), and the lengths.

        `predicates` are pairs of a row of the batch and a position in its sentence.
        """
        device = embedded.x_BTE.device
        row_P, position_P = torch.tensor(predicates).unbind(1)
        lengths_P = embedded.lengths_B[row_P]
        T = int(lengths_P.max())
        position_T = torch.arange(T)[:, None]
        # Reversed, each sentence begins with its own last word, and padding stays at the end.
        reversed_TP = torch.where(
            position_T < lengths_P, lengths_P - 1 - position_T, position_T
        ).to(device)
        is_predicate_TP = (position_T == position_P).long().to(device)
        row_P = row_P.to(device)
        column_P = torch.arange(len(row_P), device=device)
        x_TPE = embedded.x_BTE[row_P, :T].transpose(0, 1)
        h_TPH = torch.cat([x_TPE, self.mark(is_predicate_TP)], dim=-1)
        for k, layer in enumerate(self.layers):
            if k:
                h_TPH = h_TPH[reversed_TP, column_P]
            h_TPH = layer(h_TPH)
        if len(self.layers) % 2 == 0:
            h_TPH = h_TPH[reversed_TP, column_P]
        rows = embedded
        if embedded.output_BTD is not None:
            rows = embedded._replace(output_BTD=embedded.output_BTD[row_P, :T])
        return self.top(rows.append_elmo(h_TPH.transpose(0, 1))), lengths_P

    def _detect(self, x_BTE: Tensor) -> Tensor:
        """Return the score of each word as a predicate, (B, T): above 0 it is one."""
        x_BTE = x_BTE.detach()
        padded = functional.pad(x_BTE, (0, 0, 1, 1))
        around_BT3E = torch.cat([padded[:, :-2], x_BTE, padded[:, 2:]], dim=-1)
        scores_BT1: Tensor = self.detector(around_BT3E)
        return scores_BT1[:, :, 0]

    def _detection_loss(self, examples: Sequence[Example], embedded: EmbeddedBatch) -> Tensor:
        """Return the loss of the detector over sentences with known predicates."""
        is_predicate_BT = torch.zeros(embedded.mask_BT.shape)
        known_B = torch.tensor([example.predicates is not None for example in examples])
        for row, example in enumerate(examples):
            is_predicate_BT[row, list(example.predicates or ())] = 1.0
        counts_BT = embedded.mask_BT & known_B[:, None].to(embedded.mask_BT.device)
        losses_BT = functional.binary_cross_entropy_with_logits(
            self._detect(embedded.x_BTE), is_predicate_BT.to(counts_BT.device), reduction="none"
        )
        return (losses_BT * counts_BT).sum() / counts_BT.sum().clamp_min(1)
