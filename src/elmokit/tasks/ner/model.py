"""Named entities: a BiLSTM over characters and word vectors, and a CRF over its tags.

Lample et al. 2016 (BiLSTM and conditional random field over BIOES tags) with the character CNN of
Ma & Hovy 2016, as Peters et al. 2017 and 2018 use it. The characters provide case and endings,
which static vectors seldom know.

Shape letters: B sentences, T words, E size of x with ELMo, H cells of a direction, K tags,
N words of all sentences, F filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import torch
from torch import Tensor

from elmokit.tasks.character_cnn import CharacterCNN
from elmokit.tasks.crf import CRF, TagRun
from elmokit.tasks.ner.data import Example, Prediction
from elmokit.tasks.recurrent import BiLSTM, LockedDropout
from elmokit.tasks.tag_schemes import all_tags, may_follow, spans_to_tags, tags_to_spans
from elmokit.tasks.task import Preset, TrainingConfig
from elmokit.tasks.word_embedding import WordEmbedding

SCHEME: Final = "BIOES"
"""The tag scheme in the model; examples and predictions have IOB2."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Hyperparameters of the model."""

    characters: int
    """Size of a character's vector."""
    filters: int
    """Number of character filters F, three characters wide."""
    longest: int
    """Bytes of a word that are read, including the marks of its beginning and end."""
    hidden: int
    """Number of LSTM cells H of one direction."""
    layers: int
    """Number of BiLSTM layers."""
    dropout: float
    """Dropout of the characters' vector, and before and after each BiLSTM layer."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(characters=16, filters=64, longest=24, hidden=128, layers=1, dropout=0.4),
        training=TrainingConfig(epochs=20, batch=32, rate=2e-3, patience=8),
        dropout=0.4,
        total_steps=8_700,
    ),
    "paper": Preset(
        sizes=Sizes(characters=16, filters=128, longest=50, hidden=200, layers=2, dropout=0.5),
        training=TrainingConfig(epochs=75, batch=64, rate=1e-3, patience=25),
        dropout=0.5,
    ),
}


class Model(torch.nn.Module):
    """The network: sentences to tags of entities."""

    def __init__(self, words: WordEmbedding, sizes: Sizes, label_set: dict[str, Any]) -> None:
        """Create the network; `label_set["types"]` are the types of entities."""
        super().__init__()
        self.words = words
        self.tags = all_tags(label_set["types"], SCHEME)
        self._number = {tag: k for k, tag in enumerate(self.tags)}
        self.characters = CharacterCNN(sizes.filters, size=sizes.characters, longest=sizes.longest)
        self.dropout = torch.nn.Dropout(sizes.dropout)
        self.locked = LockedDropout(sizes.dropout)
        self.bilstm = BiLSTM(
            words.dim + sizes.filters, sizes.hidden, layers=sizes.layers, dropout=sizes.dropout
        )
        self.top = torch.nn.Linear(2 * sizes.hidden + words.output_dim, len(self.tags))
        self.crf = CRF(
            torch.tensor([[may_follow(j, k, SCHEME) for k in self.tags] for j in self.tags]),
            torch.tensor([may_follow(None, k, SCHEME) for k in self.tags]),
            torch.tensor([may_follow(k, None, SCHEME) for k in self.tags]),
        )

    def _scores(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return the score of each tag at each word, (B, T, K), and the lengths."""
        texts = [example.words for example in examples]
        embedded = self.words(texts)
        chars_NF = self.dropout(self.characters([word for words in texts for word in words]))
        chars_BTF = chars_NF.new_zeros(*embedded.mask_BT.shape, chars_NF.shape[1])
        chars_BTF[embedded.mask_BT] = chars_NF
        h_BTH = self.bilstm(torch.cat([embedded.x_BTE, chars_BTF], dim=-1), embedded.lengths_B)
        return self.top(embedded.append_elmo(self.locked(h_BTH))), embedded.lengths_B

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return −log P of the gold tags, the mean over sentences."""
        scores_BTK, lengths_B = self._scores(examples)
        tags_BT = torch.zeros(scores_BTK.shape[:2], dtype=torch.long)
        for row, example in enumerate(examples):
            gold = spans_to_tags(tags_to_spans(example.tags or ()), len(example.words), SCHEME)
            tags_BT[row, : len(gold)] = torch.tensor([self._number[tag] for tag in gold])
        return self.crf.loss(scores_BTK, tags_BT.to(scores_BTK.device), lengths_B).mean()

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the likeliest tags of each sentence, as IOB2, with marginal probabilities."""
        scores_BTK, lengths_B = self._scores(examples)
        paths = self.crf.decode(scores_BTK, lengths_B)
        found = [tags_to_spans([self.tags[k] for k in path]) for path in paths]
        runs = [
            TagRun(row, span.start, paths[row][span.start : span.end])
            for row, spans in enumerate(found)
            for span in spans
        ]
        confidences = iter(self.crf.span_probabilities(scores_BTK, lengths_B, runs))
        return [
            Prediction.from_tags(spans_to_tags(spans, len(path)), islice(confidences, len(spans)))
            for path, spans in zip(paths, found, strict=True)
        ]
