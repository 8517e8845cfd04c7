"""The same biLM in plain PyTorch: ordinary modules, autograd, and an optimizer.

    python benchmarks/training/pytorch_trainer.py      (see trainer_worker.py)

The method is that of bilm-tf (128 windows of 20 words, carried state, 8,192 log-uniform negatives,
Adagrad, dropout), with the building blocks of PyTorch: `Conv1d` over the characters of the distinct
words of a batch, `nn.LSTM(proj_size=…)`, which cannot clip, one matrix product for the logits, and
`cross_entropy`. PyTorch distributes the work over the cores. elmokit's reader makes the windows.

Shape letters: U distinct words, C characters, N = T·B words of one direction, T steps, B lanes,
F filters, P width, S negatives, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer_worker import LANES, NEGATIVES, WINDOW, StepCallback, serve

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig

DROPOUT, RATE, CLIP = 0.1, 0.2, 10.0
State = tuple[Tensor, Tensor]


class BiLM(nn.Module):
    """Both directions, and the softmax that they share."""

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
        self.register_buffer("probability_V", torch.log1p(1 / rank_V) / rank_V[-1].log1p())

    def words(self, ids_UC: Tensor) -> Tensor:
        """Compute word vectors (U, P) from characters."""
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
        """Return the outputs of the top layer, and the states after the window."""
        after = []
        for layer, lstm in enumerate(self.lstms[side]):
            outputs_TBP, state = lstm(functional.dropout(x_TBP, DROPOUT), states[layer])
            x_TBP = outputs_TBP + x_TBP if layer else outputs_TBP
            after.append((state[0].detach(), state[1].detach()))
        return functional.dropout(x_TBP, DROPOUT), after

    def loss(self, h_NP: Tensor, targets_N: Tensor) -> Tensor:
        """Return the loss of a sampled softmax: the true word first, then the negatives."""
        negatives_S = torch.multinomial(self.probability_V, NEGATIVES)
        weight_VP, bias_V = self.softmax.weight, self.softmax.bias
        log_expected_V = (self.probability_V * NEGATIVES).log()
        true_N = (
            (h_NP * weight_VP[targets_N]).sum(1) + bias_V[targets_N] - log_expected_V[targets_N]
        )
        others_NS = h_NP @ weight_VP[negatives_S].t() + (bias_V - log_expected_V)[negatives_S]
        others_NS = others_NS.masked_fill(targets_N[:, None] == negatives_S, -torch.inf)
        logits = torch.cat([true_N[:, None], others_NS], dim=1)
        return functional.cross_entropy(logits, torch.zeros_like(targets_N))


class PyTorchTrainer:
    """Runs the training loop."""

    packages: tuple[str, ...] = ("torch", "numpy")

    def train(self, directory: Path, size: str, cores: int, on_step: StepCallback) -> None:
        """Train a new model on the text in a directory, forever."""
        from elmokit.bilm.sizes import SIZES
        from elmokit.text.characters import ByteEncoder
        from elmokit.train.batches import BatchPosition, StreamBatches, encode_distinct_words
        from elmokit.train.corpus import Corpus

        torch.set_num_threads(cores)
        torch.manual_seed(0)
        config, corpus = SIZES[size], Corpus.open(directory)
        characters, position = ByteEncoder(config.char_cnn.max_characters), BatchPosition()
        reader = StreamBatches(corpus.train, corpus.special_ids, LANES, WINDOW, shards=1)
        model = BiLM(config, len(corpus.vocabulary))
        optimizer = torch.optim.Adagrad(model.parameters(), RATE, initial_accumulator_value=1.0)
        lstm = config.lstm
        zero = torch.zeros(1, LANES, lstm.width), torch.zeros(1, LANES, lstm.cells)
        states = [[zero] * lstm.layers for _ in range(2)]
        learned = 0
        while True:
            on_step(learned)
            batch = reader.read(position, range(LANES))
            encoded = encode_distinct_words(batch, corpus, characters)
            ids_UC, index_2N, targets_2N = (torch.from_numpy(encoded[i]) for i in (0, 2, 3))
            words_UP = model.words(ids_UC.long())
            loss = torch.zeros(())
            for side in range(2):
                x_TBP = words_UP[index_2N[side]].view(WINDOW, LANES, -1)
                outputs_TBP, states[side] = model.direction(side, x_TBP, states[side])
                loss = loss + model.loss(outputs_TBP.flatten(0, 1), targets_2N[side]) / 2
            optimizer.zero_grad()
            (loss * WINDOW).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            position, learned = reader.next_position(position), LANES * WINDOW


if __name__ == "__main__":
    serve(PyTorchTrainer)
