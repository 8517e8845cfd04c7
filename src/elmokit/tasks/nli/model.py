"""ESIM: two sentences read alone, aligned word by word, and read again with what they aligned to.

Chen, Zhu, Ling, Wei, Jiang & Inkpen 2017, "Enhanced LSTM for Natural Language Inference", the
sequential model, with the equations' numbers. ELMo is where Peters et al. 2018 (appendix, textual
entailment) found it best: at the input and at the output of the lowest biLSTM, so that ā and b̄ of
the paper are [ā ; ELMo] and [b̄ ; ELMo] from the alignment on. The
dropout is Peters et al.'s too: locked before the LSTMs, plain before the last two layers.

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

from elmokit.tasks.attention import attended, largest, mean
from elmokit.tasks.nli.data import Example, Prediction, answer
from elmokit.tasks.recurrent import BiLSTM

if TYPE_CHECKING:
    from elmokit.tasks.word_embedding import Words


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers of the model."""

    hidden: int = 300
    """H, for all LSTMs and feed-forward layers."""
    dropout: float = 0.5
    """Before the second LSTM and the last two layers; before the first one `Words` has its own."""


class Model(torch.nn.Module):
    """From two sentences to how the second follows from the first."""

    def __init__(self, words: Words, sizes: Sizes, facts: dict[str, Any]) -> None:
        """`facts["labels"]` are the labels to choose from."""
        super().__init__()
        hidden = sizes.hidden
        self.words = words
        self.labels: list[str] = list(facts["labels"])
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
                # What PyTorch starts with shrinks from layer to layer; it learns late, if at all.
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                torch.nn.init.zeros_(layer.bias)

    def forward(self, examples: Sequence[Example]) -> Tensor:
        """The labels' scores before the softmax, (B, K)."""
        # Both sides go through the same LSTMs, so they go as one batch: premises, hypotheses.
        count = len(examples)
        texts = [side.premise for side in examples] + [side.hypothesis for side in examples]
        embedded = self.words(texts)
        lengths_S = embedded.lengths_B
        T, U = int(lengths_S[:count].max()), int(lengths_S[count:].max())

        # Input encoding (1, 2): ā and b̄, beside ELMo.
        encoded_SWA = embedded.beside(self.encoder(embedded.x_BTE, lengths_S))
        a_BTA, b_BUA = encoded_SWA[:count, :T], encoded_SWA[count:, :U]
        a_mask_BT, b_mask_BU = embedded.mask_BT[:count, :T], embedded.mask_BT[count:, :U]

        # Local inference: e_ij (11) aligns softly; ã (12) and b̃ (13) are what a word aligns to.
        e_BTU = a_BTA @ b_BUA.mT
        a_tilde_BTA = attended(e_BTU, b_BUA, b_mask_BU)
        b_tilde_BUA = attended(e_BTU.mT, a_BTA, a_mask_BT)

        # Enhancement (14, 15), the projection F and the composition (16, 17).
        a_BTH, b_BUH = self._enhanced(a_BTA, a_tilde_BTA), self._enhanced(b_BUA, b_tilde_BUA)
        width = max(T, U)
        m_SWH = torch.cat(
            [functional.pad(side, (0, 0, 0, width - side.shape[1])) for side in (a_BTH, b_BUH)]
        )
        v_SWH = self.composition(m_SWH, lengths_S)

        # Pooling (18, 19): v = [average and maximum of the premise, of the hypothesis] (20).
        mask_SW = embedded.mask_BT
        pooled_SH = torch.cat([mean(v_SWH, mask_SW), largest(v_SWH, mask_SW)], dim=-1)
        v_BH = torch.cat([pooled_SH[:count], pooled_SH[count:]], dim=-1)
        scores_BK: Tensor = self.classifier(v_BH)
        return scores_BK

    def _enhanced(self, x_BTA: Tensor, aligned_BTA: Tensor) -> Tensor:
        """F([x; x̃; x − x̃; x ∘ x̃]), (B, T, H)."""
        # The same as one matrix times the four side by side, without ever laying them side by side.
        own, other, difference, product = self.projection.weight.chunk(4, dim=1)
        m_BTH = functional.linear(x_BTA, own + difference, self.projection.bias)
        m_BTH = m_BTH + functional.linear(aligned_BTA, other - difference)
        return functional.relu(m_BTH + functional.linear(x_BTA * aligned_BTA, product))

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The mean cross entropy of the gold labels."""
        scores_BK = self(examples)
        gold_B = torch.tensor([self.labels.index(answer(pair)) for pair in examples])
        return functional.cross_entropy(scores_BK, gold_B.to(scores_BK.device))

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """The likeliest label of each pair."""
        shares = self(examples).softmax(dim=-1).tolist()
        return [
            Prediction(
                max(zip(row, self.labels, strict=True), key=lambda pair: pair[0])[1],
                dict(zip(self.labels, row, strict=True)),
            )
            for row in shares
        ]
