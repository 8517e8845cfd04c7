"""BCN: a sentence is encoded, attends to itself, is encoded again, pooled and classified.

McCann, Bradbury, Xiong & Socher 2017, "Learned in Translation: Contextualized Word Vectors",
section 5. Where only one sentence is classified it is both inputs, so that the biattention has one
side. ELMo is used where Peters et al. 2018 have it (appendix, sentiment): at the input, and at the
output of the upper biLSTM, the integrator, before the pooling. The last layers are McCann's
(batch-normalized maxout) if `maxout` is set, or those that Peters et al. found better: two ReLU
layers with dropout.

Shape letters: B sentences, T words, E size of a word's input, H cells of one direction,
O = 2H + size of ELMo at the output, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.attention import attend, masked_max, masked_mean, masked_softmax
from elmokit.tasks.recurrent import BiLSTM
from elmokit.tasks.sentiment.data import Example, Prediction, gold_label
from elmokit.tasks.task import Preset, TrainingConfig

if TYPE_CHECKING:
    from elmokit.tasks.word_embedding import WordEmbedding


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Hyperparameters of the model, and what it is trained on."""

    classes: int = 5
    """Number of classes: 5, or 2, which skips neutral sentences."""
    phrases: int = 0
    """Minimum number of words of a phrase to train on; 0 for whole sentences only."""
    hidden: int = 300
    """Number of cells H of one direction, and size of the first feed-forward layer."""
    dropout: float = 0.3
    """Dropout in the feed-forward layers, and of the vectors that are pooled."""
    maxout: int = 0
    """Linear pieces of a maxout unit in the last layers; 0 for ReLU layers without batch norm."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(hidden=64, dropout=0.1, phrases=10),
        training=TrainingConfig(epochs=8, batch=64, rate=0.002, patience=4),
        dropout=0.1,
        total_steps=5_100,
    ),
    "paper": Preset(
        sizes=Sizes(hidden=300, dropout=0.3, phrases=4),
        training=TrainingConfig(epochs=20, batch=100, rate=0.0001, patience=5),
        dropout=0.5,
    ),
}


class Model(torch.nn.Module):
    """The network: sentences to classes of sentiment."""

    def __init__(self, words: WordEmbedding, sizes: Sizes, label_set: dict[str, Any]) -> None:
        """Create the network; `label_set` is empty, since the classes are in the sizes."""
        super().__init__()
        hidden, dropout = sizes.hidden, sizes.dropout
        self.words = words
        self.classes = sizes.classes
        self.feedforward = torch.nn.Sequential(
            torch.nn.Linear(words.dim, hidden), torch.nn.ReLU(), torch.nn.Dropout(dropout)
        )
        self.encoder = BiLSTM(hidden, hidden)
        self.integrator = BiLSTM(3 * self.encoder.dim, hidden)
        integrated = self.integrator.dim + words.output_dim
        self.dropout = torch.nn.Dropout(dropout)
        self.self_attention = torch.nn.Linear(integrated, 1)
        self.classifier = _classifier(4 * integrated, hidden, sizes)
        for layer in (*self.feedforward, *self.classifier.modules()):
            if isinstance(layer, torch.nn.Linear):
                # PyTorch's default shrinks the signal from layer to layer: it learns late.
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                torch.nn.init.zeros_(layer.bias)

    def forward(self, examples: Sequence[Example]) -> Tensor:
        """Return the score of each class before the softmax, (B, K)."""
        embedded = self.words([example.words for example in examples])
        mask_BT, lengths_B = embedded.mask_BT, embedded.lengths_B
        x_BTH = self.encoder(self.feedforward(embedded.x_BTE), lengths_B)

        # Biattention: A = X Xᵀ; C is what each word attends to in the sentence's other copy.
        c_BTH = attend(x_BTH @ x_BTH.mT, x_BTH, mask_BT)
        x_y_BTH = self.integrator(torch.cat([x_BTH, x_BTH - c_BTH, x_BTH * c_BTH], -1), lengths_B)
        x_y_BTO = self.dropout(embedded.append_elmo(x_y_BTH))

        # Pooling: maximum, mean, minimum, and an average with learned weights β.
        beta_BT = masked_softmax(self.self_attention(x_y_BTO).squeeze(-1), mask_BT)
        x_self_BO = (beta_BT[:, None, :] @ x_y_BTO).squeeze(1)
        pooled = [
            masked_max(x_y_BTO, mask_BT),
            masked_mean(x_y_BTO, mask_BT),
            -masked_max(-x_y_BTO, mask_BT),
            x_self_BO,
        ]
        scores_BK: Tensor = self.classifier(torch.cat(pooled, dim=-1))
        return scores_BK

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return the mean cross entropy of the gold labels."""
        scores_BK = self(examples)
        gold_B = torch.tensor([gold_label(example) for example in examples])
        return functional.cross_entropy(scores_BK, gold_B.to(scores_BK.device))

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the likeliest class of each sentence, with all probabilities."""
        rows = self(examples).softmax(dim=-1).tolist()
        return [
            Prediction(max(range(self.classes), key=row.__getitem__), tuple(row)) for row in rows
        ]


def _classifier(size: int, hidden: int, sizes: Sizes) -> torch.nn.Module:
    """Return the last two hidden layers and the output layer."""
    dropout = torch.nn.Dropout(sizes.dropout)
    widths = [size, 2 * hidden, hidden]
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        if sizes.maxout:
            layers += [dropout, Maxout(before, after, sizes.maxout)]
        else:
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU(), dropout]
    return torch.nn.Sequential(*layers, torch.nn.Linear(hidden, sizes.classes))


class Maxout(torch.nn.Module):
    """Maxout units: each is the maximum of several linear functions of batch-normalized input."""

    def __init__(self, size: int, units: int, pieces: int) -> None:
        """Create `units` units of `pieces` linear functions each, for inputs of `size` numbers."""
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(size)
        self.linear = torch.nn.Linear(size, units * pieces)
        self.pieces = pieces

    def forward(self, x_BE: Tensor) -> Tensor:
        """Map (B, E) to (B, units)."""
        if self.training and len(x_BE) == 1:  # one example has no variance
            norm = self.norm
            x_BE = functional.batch_norm(
                x_BE, norm.running_mean, norm.running_var, norm.weight, norm.bias
            )
        else:
            x_BE = self.norm(x_BE)
        pieces: Tensor = self.linear(x_BE)
        return pieces.view(len(x_BE), -1, self.pieces).amax(dim=-1)
