"""ESIM: two sentences are encoded, aligned word by word, and encoded again with their alignment.

Chen, Zhu, Ling, Wei, Jiang & Inkpen 2017, "Enhanced LSTM for Natural Language Inference", the
sequential model, with the numbers of its equations. ELMo is used where Peters et al. 2018
(appendix, textual entailment) found it best: at the input and at the output of the lowest biLSTM,
so that ā and b̄ of the paper are [ā ; ELMo] and [b̄ ; ELMo] from the alignment on. The dropout is
that of Peters et al. too: locked before the LSTMs, plain before the last two layers.

Shape letters: B pairs, T words of the premise, U words of the hypothesis, S = 2B sentences,
E size of a word's input, H cells of one direction, A = 2H + size of ELMo at the output, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.attention import attend, masked_max, masked_mean
from elmokit.tasks.nli.data import Example, Prediction, gold_label
from elmokit.tasks.recurrent import BiLSTM
from elmokit.tasks.task import Preset, TrainingConfig

if TYPE_CHECKING:
    from elmokit.tasks.word_embedding import WordEmbedding


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Hyperparameters of the model."""

    hidden: int = 300
    """Number of cells H of one direction of an LSTM, and size of the feed-forward layers."""
    dropout: float = 0.5
    """Dropout before the second LSTM and the last two layers; `Preset.dropout` is before the first
    LSTM."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(hidden=64, dropout=0.2),
        training=TrainingConfig(epochs=12, batch=32, rate=0.001, patience=6, steps=400),
        dropout=0.2,
        total_steps=4_800,
    ),
    "paper": Preset(
        sizes=Sizes(hidden=300, dropout=0.5),
        training=TrainingConfig(epochs=75, batch=32, rate=0.0004, patience=5, clip=5.0),
        dropout=0.5,
    ),
}


class Model(torch.nn.Module):
    """The network: pairs of sentences to labels."""

    def __init__(self, words: WordEmbedding, sizes: Sizes, label_set: dict[str, Any]) -> None:
        """Create the network; `label_set["labels"]` are the labels to choose from."""
        super().__init__()
        hidden = sizes.hidden
        self.words = words
        self.labels: list[str] = list(label_set["labels"])
        self.encoder = BiLSTM(words.dim, hidden)
        aligned = self.encoder.dim + words.output_dim
        self.projection = torch.nn.Linear(4 * aligned, hidden)
        self.composition = BiLSTM(hidden, hidden, dropout=sizes.dropout)
        self.classifier = torch.nn.Sequential(
            torch.nn.Dropout(sizes.dropout),
            torch.nn.Linear(4 * self.composition.dim, hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(sizes.dropout),
            torch.nn.Linear(hidden, len(self.labels)),
        )
        for layer in (self.projection, *self.classifier):
            if isinstance(layer, torch.nn.Linear):
                # PyTorch's default shrinks the signal from layer to layer: it learns late.
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                torch.nn.init.zeros_(layer.bias)

    def forward(self, examples: Sequence[Example]) -> Tensor:
        """Return the score of each label before the softmax, (B, K)."""
        # Both sides go through the same LSTMs, so they are one batch: premises, then hypotheses.
        count = len(examples)
        texts = [side.premise for side in examples] + [side.hypothesis for side in examples]
        embedded = self.words(texts)
        lengths_S = embedded.lengths_B
        T, U = int(lengths_S[:count].max()), int(lengths_S[count:].max())

        # Input encoding (1, 2): ā and b̄, with ELMo beside them.
        encoded_SWA = embedded.append_elmo(self.encoder(embedded.x_BTE, lengths_S))
        a_BTA, b_BUA = encoded_SWA[:count, :T], encoded_SWA[count:, :U]
        a_mask_BT, b_mask_BU = embedded.mask_BT[:count, :T], embedded.mask_BT[count:, :U]

        # Local inference: e_ij (11) aligns softly; ã (12) and b̃ (13) are what each word aligns to.
        e_BTU = a_BTA @ b_BUA.mT
        a_tilde_BTA = attend(e_BTU, b_BUA, b_mask_BU)
        b_tilde_BUA = attend(e_BTU.mT, a_BTA, a_mask_BT)

        # Enhancement (14, 15), the projection F and the composition (16, 17).
        a_BTH, b_BUH = self._enhanced(a_BTA, a_tilde_BTA), self._enhanced(b_BUA, b_tilde_BUA)
        width = max(T, U)
        m_SWH = torch.cat(
            [functional.pad(side, (0, 0, 0, width - side.shape[1])) for side in (a_BTH, b_BUH)]
        )
        v_SWH = self.composition(m_SWH, lengths_S)

        # Pooling (18, 19): v = [average and maximum of the premise, of the hypothesis] (20).
        mask_SW = embedded.mask_BT
        pooled_SH = torch.cat([masked_mean(v_SWH, mask_SW), masked_max(v_SWH, mask_SW)], dim=-1)
        v_BH = torch.cat([pooled_SH[:count], pooled_SH[count:]], dim=-1)
        scores_BK: Tensor = self.classifier(v_BH)
        return scores_BK

    def _enhanced(self, x_BTA: Tensor, aligned_BTA: Tensor) -> Tensor:
        """Return F([x; x̃; x − x̃; x ∘ x̃]), (B, T, H)."""
        # Equal to one matrix times the concatenation of the four, without ever concatenating them.
        own, other, difference, product = self.projection.weight.chunk(4, dim=1)
        m_BTH = functional.linear(x_BTA, own + difference, self.projection.bias)
        m_BTH = m_BTH + functional.linear(aligned_BTA, other - difference)
        return functional.relu(m_BTH + functional.linear(x_BTA * aligned_BTA, product))

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return the mean cross entropy of the gold labels."""
        scores_BK = self(examples)
        gold_B = torch.tensor([self.labels.index(gold_label(pair)) for pair in examples])
        return functional.cross_entropy(scores_BK, gold_B.to(scores_BK.device))

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the likeliest label of each pair, with all probabilities."""
        rows = self(examples).softmax(dim=-1).tolist()
        return [
            Prediction(
                max(zip(row, self.labels, strict=True), key=lambda pair: pair[0])[1],
                dict(zip(self.labels, row, strict=True)),
            )
            for row in rows
        ]
