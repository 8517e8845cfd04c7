"""The loop: read a batch, learn from it, note how it went, until the budget is spent.

Everything random is drawn from the seed and the number of the step, and everything else that a
step depends on is in a checkpoint: a run that dies and is resumed ends with the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.errors import FormatError
from elmokit.nn.reading import Reading
from elmokit.nn.softmax import Candidates, Sampler
from elmokit.nn.state import TensorState
from elmokit.text.characters import Characters
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import Group
from elmokit.train.learner import Learner, Lesson
from elmokit.train.recipe import rate_at
from elmokit.train.stream import Marks, Place, Reader, distinct


@dataclass
class Progress:
    """How far a run is; what a checkpoint has to remember besides arrays."""

    step: int = 0
    tokens: int = 0
    """Predictions made in each direction."""
    seconds: float = 0.0
    """Of training, over all sittings."""
    place: Place = field(default_factory=Place)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "place": list(self.place)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Progress:
        """From JSON."""
        return cls(**{**data, "place": Place(*data["place"])})


@dataclass(frozen=True)
class Step:
    """What the loop tells about a step it has taken."""

    loss: float
    norm: float
    rate: float
    tokens: int


class _Batch(NamedTuple):
    """What a step learns from."""

    readings: list[Reading]
    """This process's shards."""
    words: int
    """Predictions in one direction, over all shards of all processes."""
    candidates: Candidates
    following: Place


class Loop:
    """A learner, its text, and where it stands."""

    def __init__(
        self,
        learner: Learner,
        corpus: Corpus,
        reader: Reader,
        sampler: Sampler,
        characters: Characters,
        budget: Budget,
        group: Group,
        start: TensorState | None = None,
    ) -> None:
        """Begins at the beginning; see `load`.

        `start` is one row that every sentence starts from; nothing read yet, if None.
        """
        self.intact = True
        """Whether no step is half done."""
        self.learner, self.budget, self.progress = learner, budget, Progress()
        self._corpus, self._reader, self._sampler = corpus, reader, sampler
        self._characters, self._unknown = characters, Marks.of(corpus).unknown
        self._recipe, self._group = learner.recipe, group
        each = self._recipe.shards // group.world
        self._mine = range(group.rank * each, (group.rank + 1) * each)
        self._start = (start or learner.zero_state(1)).detach().to(learner.flat)
        self._carried = self._fresh() if reader.carries else None
        self._ahead = ThreadPoolExecutor(1, "reader")
        self._threads_before = torch.get_num_threads()

    @property
    def spent(self) -> float:
        """The part of the budget that is gone."""
        p = self.progress
        return self.budget.spent(
            seconds=p.seconds, tokens=p.tokens, epoch_tokens=self._reader.epoch_words
        )

    @property
    def epochs(self) -> float:
        """How often the whole text was read."""
        return self.progress.tokens / self._reader.epoch_words

    def run(self, tell: Callable[[Step], None]) -> None:
        """Learn until the budget is spent; `tell` hears of every step, and may raise to stop."""
        torch.set_num_threads(1)  # the threads of the shards are all that compute
        coming = self._read_ahead(self.progress.place, self.progress.step)
        before = time.monotonic()
        while (spent := self.spent) < 1:
            now, batch = self.progress, coming.result()
            coming = self._read_ahead(batch.following, now.step + 1)
            starts = self._carried or [self._start.repeat(int(r.alive[0])) for r in batch.readings]
            lessons = [
                Lesson(reading, start, (self._recipe.seed, now.step, shard))
                for reading, start, shard in zip(batch.readings, starts, self._mine, strict=True)
            ]
            rate = rate_at(self._recipe, now.step, spent)
            self.intact = False
            taught = self.learner.learn(lessons, batch.candidates, batch.words, rate)
            if self._carried:
                self._carried = taught.after
            seconds = now.seconds + self._group.agree(time.monotonic() - before)
            before = time.monotonic()
            tokens = now.tokens + batch.words
            self.progress = Progress(now.step + 1, tokens, seconds, batch.following)
            self.intact = True
            tell(Step(taught.loss, taught.norm, rate, batch.words))

    def _read_ahead(self, place: Place, step: int) -> Future[_Batch]:
        """The batch at a place, while another is being learned from.

        Only that thread asks the reader, which remembers what it has sorted.
        """

        def read() -> _Batch:
            shards = self._reader.shards(place)
            readings = []
            for shard in self._mine:
                words = self._reader.words(place, shards[shard])
                ids_UC, characters_U, index_2N, targets_2N = distinct(
                    words, self._corpus, self._characters, self._unknown
                )
                readings.append(Reading(ids_UC, characters_U, index_2N, targets_2N, words.alive))
            random = np.random.default_rng([self._recipe.seed, step, 1])
            candidates, following = self._sampler.draw(random), self._reader.after(place)
            return _Batch(readings, self._reader.count(place), candidates, following)

        return self._ahead.submit(read)

    def _fresh(self) -> list[TensorState]:
        lanes = self._recipe.lanes // self._recipe.shards
        return [self.learner.zero_state(lanes) for _ in self._mine]

    # -- what a checkpoint holds ---------------------------------------------------------------

    def arrays(self) -> dict[str, Tensor]:
        """Parameters, optimizer and carried states; every process has to call it."""
        found = {"parameters": self.learner.flat}
        found |= {f"optimizer.{name}": a for name, a in self.learner.optimizer.state().items()}
        for k, name in enumerate(TensorState._fields):
            if self._carried:
                everyone = self._group.gather(torch.stack([state[k] for state in self._carried]))
                found[f"carried.{name}"] = torch.cat(everyone)
        return found

    def load(self, arrays: dict[str, Tensor], progress: Progress) -> None:
        """Go on from a checkpoint."""
        for name, own in self.arrays().items():
            found = tuple(arrays[name].shape) if name in arrays else "missing"
            if found != tuple(own.shape):
                raise FormatError(
                    f"the checkpoint's {name} is {found}; this run asks for {tuple(own.shape)}"
                )
        self.progress = progress
        self.learner.flat.copy_(arrays["parameters"])
        prefix = "optimizer."
        self.learner.optimizer.load(
            {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        )
        if self._carried:
            parts = [arrays[f"carried.{name}"] for name in TensorState._fields]
            self._carried = [
                TensorState(*(part[shard].clone() for part in parts)).to(self.learner.flat)
                for shard in self._mine
            ]

    def close(self) -> None:
        """Let the threads go."""
        self._ahead.shutdown(cancel_futures=True)
        self.learner.close()
        torch.set_num_threads(self._threads_before)
