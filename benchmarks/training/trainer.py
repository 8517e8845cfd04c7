"""A trainer's side of the conversation: it learns when it is told to, so many steps at a time.

A training loop does not like to be stopped. It runs in a thread of its own and comes by a `Gate`
between two steps; the driver (`run.py`) opens the gate for some steps and gets the seconds that
they took. So several trainers can take turns on one machine, each with its real loop: reading
text, learning, updating. The conversation itself is that of `../peers/worker.py`; this adds

    {"command": "prepare", "directory": DIR, "size": "tiny", "cores": 2}
    {"command": "learn", "steps": 10}        the answer: seconds, words

This file knows no ELMo, and imports the standard library only.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).parents[1] / "peers"))
import worker

LANES, WINDOW, NEGATIVES = 128, 20, 8192
"""The batch of bilm-tf, and the words that its softmax compares the right ones with."""

Between = Callable[[int], None]
"""Called by a loop between two steps, with the words that it learned from since the last call: a
word that is predicted in both directions counts once."""


class Trainer(Protocol):
    """What a contestant's script offers; made without arguments, which imports its packages."""

    packages: tuple[str, ...]
    """The packages whose versions determine the result."""

    def train(self, directory: Path, size: str, cores: int, between: Between) -> None:
        """Train a new model on the text in a directory, for ever."""


class Gate:
    """Where a loop waits between two steps until it is told to go on."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._left = self._words = 0

    def between(self, words: int) -> None:
        """For the loop."""
        self._words += words
        if not self._left:
            self._done.put(None)
            self._left = self._asked.get()
        self._left -= 1

    def end(self, error: Exception) -> None:
        """For the loop, when it can do no more."""
        self._done.put(error)

    def arrived(self) -> None:
        """Wait until the loop stands at the gate."""
        error = self._done.get()
        if error is not None:
            raise error

    def open(self, steps: int) -> tuple[float, int]:
        """Let the loop take so many steps: seconds and words."""
        self._words = 0
        start = time.perf_counter()
        self._asked.put(steps)
        self.arrived()
        return time.perf_counter() - start, self._words


def serve(make: Callable[[], Trainer]) -> None:
    """Answer requests from stdin until it ends."""
    gate = Gate()

    def prepare(trainer: Trainer, directory: str, size: str, cores: int) -> dict[str, Any]:
        def train() -> None:
            try:
                trainer.train(Path(directory), size, cores, gate.between)
                raise RuntimeError("the loop ended by itself")
            except Exception as error:
                gate.end(error)

        start = time.perf_counter()
        threading.Thread(target=train, daemon=True).start()
        gate.arrived()
        return {"seconds": time.perf_counter() - start}

    def learn(trainer: Trainer, steps: int) -> dict[str, Any]:
        seconds, words = gate.open(steps)
        return {"seconds": seconds, "words": words}

    worker.COMMANDS.update(prepare=prepare, learn=learn)
    worker.serve(make)  # type: ignore[arg-type]  # of a peer it uses `packages` alone
