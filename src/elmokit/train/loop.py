"""The training loop: read a batch, take a step, report it, until the budget is spent.

Everything random is drawn from the seed and the number of the step, and everything else that a step
depends on is in a checkpoint: a run that dies and is resumed ends with the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.errors import FormatError
from elmokit.nn.language_model import LMBatch
from elmokit.nn.samplers import Candidates, CandidateSampler
from elmokit.nn.state import TensorState
from elmokit.text.characters import CharacterEncoder
from elmokit.threads import ThreadPool
from elmokit.train.batches import BatchPosition, BatchReader, encode_distinct_words
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import ProcessGroup
from elmokit.train.trainer import ShardBatch, Trainer


@dataclass
class TrainingProgress:
    """How far a run is: what a checkpoint holds besides arrays."""

    step: int = 0
    """Number of optimizer steps taken."""
    tokens: int = 0
    """Predictions made in each direction."""
    seconds: float = 0.0
    """Training time over all sessions of the run."""
    position: BatchPosition = field(default_factory=BatchPosition)
    """Position of the next batch in the corpus."""

    def to_dict(self) -> dict[str, Any]:
        """Return the progress as a dictionary for JSON, with the position as `place`."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "place": list(self.position),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainingProgress:
        """Restore what `to_dict` returned."""
        values = dict(data)
        return cls(position=BatchPosition(*values.pop("place")), **values)


@dataclass(frozen=True)
class StepMetrics:
    """The metrics of one training step."""

    loss: float
    """Mean loss over all predictions of the batch in nats, by the sampled softmax."""
    norm: float
    """Norm of the gradient before clipping."""
    rate: float
    """Learning rate."""
    tokens: int
    """Predictions in each direction."""


class _Batch(NamedTuple):
    """The input of one training step."""

    readings: list[LMBatch]
    """This process's shards."""
    tokens: int
    """Predictions in one direction, over all shards of all processes."""
    candidates: Candidates
    """Words of the sampled softmax."""
    next_position: BatchPosition


class TrainingLoop:
    """A trainer, the batches it learns from, and how far it is."""

    def __init__(
        self,
        trainer: Trainer,
        corpus: Corpus,
        reader: BatchReader,
        sampler: CandidateSampler,
        characters: CharacterEncoder,
        budget: Budget,
        group: ProcessGroup,
        start: TensorState | None = None,
    ) -> None:
        """Prepare to train from the start of the corpus; `load` continues from a checkpoint.

        Args:
            trainer: Takes the steps.
            corpus: Words and vocabulary of the text.
            reader: Reads the batches of the corpus.
            sampler: Draws the candidates of the sampled softmax.
            characters: Encodes words as characters.
            budget: When to stop.
            group: The processes that train together.
            start: LSTM state, of one row, that every sentence starts from; zero if None.
        """
        self.intact = True
        """Whether no step is half done, so that a checkpoint would be consistent."""
        self.trainer, self.budget, self.progress = trainer, budget, TrainingProgress()
        self._corpus, self._reader, self._sampler = corpus, reader, sampler
        self._characters, self._recipe, self._group = characters, trainer.recipe, group
        shards = self._recipe.shards // group.world
        self._own_shards = range(group.rank * shards, (group.rank + 1) * shards)
        self._start = (start or trainer.zero_state(1)).detach().to(trainer.parameters)
        self._carried: list[TensorState] | None = None
        if reader.carries_state:
            lanes = self._recipe.lanes // self._recipe.shards
            self._carried = [trainer.zero_state(lanes) for _ in self._own_shards]
        self._read_thread = ThreadPool(1, "reader")
        self._torch_threads = torch.get_num_threads()

    @property
    def spent(self) -> float:
        """Fraction of the budget that is spent, from 0 to 1."""
        p = self.progress
        return self.budget.spent(
            seconds=p.seconds, tokens=p.tokens, epoch_tokens=self._reader.epoch_tokens
        )

    @property
    def epochs(self) -> float:
        """Number of passes over the text so far."""
        return self.progress.tokens / self._reader.epoch_tokens

    def run(self, on_step: Callable[[StepMetrics], None]) -> None:
        """Train until the budget is spent; `on_step` may raise an exception to stop."""
        torch.set_num_threads(1)  # the shards have threads of their own
        upcoming = self._read_ahead(self.progress.position, self.progress.step)
        last_time = time.monotonic()
        while (spent := self.spent) < 1:
            before, batch = self.progress, upcoming.result()
            upcoming = self._read_ahead(batch.next_position, before.step + 1)
            starts = self._carried or [self._start.repeat(int(r.alive[0])) for r in batch.readings]
            shards = [
                ShardBatch(reading, start, (self._recipe.seed, before.step, shard))
                for reading, start, shard in zip(
                    batch.readings, starts, self._own_shards, strict=True
                )
            ]
            rate = self._recipe.learning_rate(before.step, spent)
            self.intact = False
            result = self.trainer.train_step(shards, batch.candidates, batch.tokens, rate)
            if self._carried:
                self._carried = result.final_states
            seconds = before.seconds + self._group.broadcast(time.monotonic() - last_time)
            last_time = time.monotonic()
            self.progress = TrainingProgress(
                before.step + 1, before.tokens + batch.tokens, seconds, batch.next_position
            )
            self.intact = True
            on_step(StepMetrics(result.loss, result.norm, rate, batch.tokens))

    def _read_ahead(self, position: BatchPosition, step: int) -> Future[_Batch]:
        """Read a batch in another thread, the only one that uses the reader and its cache."""

        def read() -> _Batch:
            shards = self._reader.shards(position)
            readings = []
            for shard in self._own_shards:
                words = self._reader.read(position, shards[shard])
                encoded = encode_distinct_words(words, self._corpus, self._characters)
                readings.append(LMBatch(*encoded, words.alive))
            rng = np.random.default_rng([self._recipe.seed, step, 1])
            return _Batch(
                readings,
                self._reader.count_tokens(position),
                self._sampler.draw(rng),
                self._reader.next_position(position),
            )

        return self._read_thread.submit(read)

    # -- checkpoints -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Tensor]:
        """Return the arrays of a checkpoint: parameters, optimizer and carried LSTM states.

        Every process has to call it.
        """
        arrays = {"parameters": self.trainer.parameters}
        arrays |= {f"optimizer.{name}": a for name, a in self.trainer.optimizer_state().items()}
        for k, name in enumerate(TensorState._fields):
            if self._carried:
                by_process = self._group.gather(torch.stack([state[k] for state in self._carried]))
                arrays[f"carried.{name}"] = torch.cat(by_process)
        return arrays

    def load(self, arrays: dict[str, Tensor], progress: TrainingProgress) -> None:
        """Continue from the arrays and the progress of a checkpoint."""
        for name, own in self.arrays().items():
            shape = tuple(arrays[name].shape) if name in arrays else "missing"
            if shape != tuple(own.shape):
                raise FormatError(
                    f"the checkpoint's {name} is {shape}; expected {tuple(own.shape)} for this run"
                )
        self.progress = progress
        self.trainer.parameters.copy_(arrays["parameters"])
        prefix = "optimizer."
        self.trainer.load_optimizer_state(
            {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        )
        if self._carried:
            parts = [arrays[f"carried.{name}"] for name in TensorState._fields]
            self._carried = [
                TensorState(*(part[shard].clone() for part in parts)).to(self.trainer.parameters)
                for shard in self._own_shards
            ]

    def close(self) -> None:
        """Stop the threads, and give PyTorch its own back."""
        self._read_thread.shutdown(cancel_futures=True)
        self.trainer.close()
        torch.set_num_threads(self._torch_threads)
