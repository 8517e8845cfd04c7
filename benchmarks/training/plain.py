"""The same biLM in plain PyTorch, as one would write it: modules, autograd, an optimizer.

    python benchmarks/training/plain.py      (see trainer.py)

The method is bilm-tf's (128 windows of 20 words, carried state, 8,192 log-uniform negatives,
Adagrad, dropout), with what PyTorch has to offer: `Conv1d` over the characters of the batch's
distinct words, `nn.LSTM(proj_size=…)`, which has no clips, one product for the logits and
`cross_entropy`. PyTorch uses all cores as it sees fit. The windows are cut by elmokit's reader.

Shape letters: U distinct words, C characters, N = T·B words of one direction, T steps, B lanes,
F filters, P width, S negatives, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer import LANES, NEGATIVES, WINDOW, Between, serve

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig

DROPOUT, RATE, CLIP = 0.1, 0.2, 10.0
State = tuple[Tensor, Tensor]


class BiLM(nn.Module):
    """Both directions and the softmax that they share."""

    def __init__(self, config: BiLMConfig, vocabulary: int) -> None:
        super().__init__()
        cnn, lstm = config.char_cnn, config.lstm
        self.characters = nn.Embedding(cnn.characters, cnn.embedding_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(cnn.embedding_dim, count, width) for width, count in cnn.filters
        )
        self.highways = nn.ModuleList(
            nn.Linear(cnn.n_filters, 2 * cnn.n_filters) for _ in range(cnn.highways)
        )
        self.projection = nn.Linear(cnn.n_filters, lstm.width)
        self.lstms = nn.ModuleList(
            nn.ModuleList(
                nn.LSTM(lstm.width, lstm.cells, proj_size=lstm.width) for _ in range(lstm.layers)
            )
            for _ in range(2)
        )
        self.softmax = nn.Linear(lstm.width, vocabulary)
        rank_V = torch.arange(1, vocabulary + 1, dtype=torch.float32)
        self.register_buffer("likely_V", torch.log1p(1 / rank_V) / rank_V[-1].log1p())

    def words(self, ids_UC: Tensor) -> Tensor:
        """Characters to word vectors (U, P)."""
        x_UEC = self.characters(ids_UC).transpose(1, 2)
        x_UF = torch.cat([conv(x_UEC).amax(2).relu() for conv in self.convolutions], dim=1)
        for highway in self.highways:
            transform, carry = highway(x_UF).chunk(2, dim=1)
            gate = carry.sigmoid()
            x_UF = gate * transform.relu() + (1 - gate) * x_UF
        return self.projection(x_UF)

    def direction(
        self, side: int, x_TBP: Tensor, states: list[State]
    ) -> tuple[Tensor, list[State]]:
        """The top layer's outputs, and the states after."""
        after = []
        for layer, lstm in enumerate(self.lstms[side]):
            said_TBP, state = lstm(functional.dropout(x_TBP, DROPOUT), states[layer])
            x_TBP = said_TBP + x_TBP if layer else said_TBP
            after.append((state[0].detach(), state[1].detach()))
        return functional.dropout(x_TBP, DROPOUT), after

    def loss(self, h_NP: Tensor, targets_N: Tensor) -> Tensor:
        """Sampled softmax: the true word first, then the negatives."""
        negatives_S = torch.multinomial(self.likely_V, NEGATIVES)
        weight_VP, bias_V = self.softmax.weight, self.softmax.bias
        often_V = (self.likely_V * NEGATIVES).log()
        true_N = (h_NP * weight_VP[targets_N]).sum(1) + bias_V[targets_N] - often_V[targets_N]
        others_NS = h_NP @ weight_VP[negatives_S].t() + (bias_V - often_V)[negatives_S]
        others_NS = others_NS.masked_fill(targets_N[:, None] == negatives_S, -torch.inf)
        logits = torch.cat([true_N[:, None], others_NS], dim=1)
        return functional.cross_entropy(logits, torch.zeros_like(targets_N))


class Plain:
    """Drives it."""

    packages: tuple[str, ...] = ("torch", "numpy")

    def train(self, directory: Path, size: str, cores: int, between: Between) -> None:
        """The loop."""
        from elmokit.bilm.sizes import SIZES
        from elmokit.text.characters import Bytes
        from elmokit.train.corpus import Corpus
        from elmokit.train.stream import Marks, Place, Stream, distinct

        torch.set_num_threads(cores)
        torch.manual_seed(0)
        config, corpus = SIZES[size], Corpus.open(directory)
        marks, characters = Marks.of(corpus), Bytes(config.char_cnn.max_characters)
        reader, place = Stream(corpus.train, marks, LANES, WINDOW, shards=1), Place()
        model = BiLM(config, len(corpus.vocabulary))
        optimizer = torch.optim.Adagrad(model.parameters(), RATE, initial_accumulator_value=1.0)
        lstm = config.lstm
        zero = torch.zeros(1, LANES, lstm.width), torch.zeros(1, LANES, lstm.cells)
        states = [[zero] * lstm.layers for _ in range(2)]
        learned = 0
        while True:
            between(learned)
            words = reader.words(place, range(LANES))
            found = distinct(words, corpus, characters, marks.unknown)
            ids_UC, index_2N, targets_2N = (torch.from_numpy(found[i]) for i in (0, 2, 3))
            words_UP = model.words(ids_UC.long())
            loss = torch.zeros(())
            for side in range(2):
                x_TBP = words_UP[index_2N[side]].view(WINDOW, LANES, -1)
                said_TBP, states[side] = model.direction(side, x_TBP, states[side])
                loss = loss + model.loss(said_TBP.flatten(0, 1), targets_2N[side]) / 2
            optimizer.zero_grad()
            (loss * WINDOW).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            place, learned = reader.after(place), LANES * WINDOW


if __name__ == "__main__":
    serve(Plain)
