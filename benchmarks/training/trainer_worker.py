"""The trainer's side of the protocol: trains as many steps as the driver asks for, then waits.

A training loop cannot be paused from outside. So it runs in a thread of its own and calls back
between two steps; the callback waits until the driver (`run.py`) asks for more steps, and the
driver gets the seconds that they took. In this way several trainers take turns on one machine,
each with its real loop: reading text, computing gradients, updating weights. The protocol is that
of `../peers/worker.py`, with two more commands:

    {"command": "prepare", "directory": DIR, "size": "tiny", "cores": 2}
    {"command": "learn", "steps": 10}        answers with seconds and words

This file knows nothing about ELMo, and imports the standard library only.
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
"""Batch of bilm-tf: parallel windows, words per window, and negatives of its softmax."""

StepCallback = Callable[[int], None]
"""Called by a loop between two steps, with the number of words trained on since the last call. A
word that is predicted in both directions counts once."""


class Trainer(Protocol):
    """The interface of a trainer; created without arguments, which imports its packages."""

    packages: tuple[str, ...]
    """Packages whose versions determine the result."""

    def train(self, directory: Path, size: str, cores: int, on_step: StepCallback) -> None:
        """Train a new model on the text in a directory, forever."""


class StepController:
    """Lets a training loop run for a number of steps at a time."""

    def __init__(self) -> None:
        self._requested: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._remaining = self._words = 0

    def on_step(self, words: int) -> None:
        """Count the words of a step, and wait if no steps remain (called by the loop)."""
        self._words += words
        if not self._remaining:
            self._done.put(None)
            self._remaining = self._requested.get()
        self._remaining -= 1

    def fail(self, error: Exception) -> None:
        """Report that the loop has ended with an error (called by the loop)."""
        self._done.put(error)

    def wait(self) -> None:
        """Wait until the loop waits for steps; raise the error if it has ended."""
        error = self._done.get()
        if error is not None:
            raise error

    def run(self, steps: int) -> tuple[float, int]:
        """Let the loop run for some steps; return the seconds and words they took."""
        self._words = 0
        start = time.perf_counter()
        self._requested.put(steps)
        self.wait()
        return time.perf_counter() - start, self._words


def serve(make: Callable[[], Trainer]) -> None:
    """Answer requests from stdin until it ends; `make` creates the trainer."""
    controller = StepController()

    def prepare(trainer: Trainer, directory: str, size: str, cores: int) -> dict[str, Any]:
        def train() -> None:
            try:
                trainer.train(Path(directory), size, cores, controller.on_step)
                raise RuntimeError("the training loop ended by itself")
            except Exception as error:
                controller.fail(error)

        start = time.perf_counter()
        threading.Thread(target=train, daemon=True).start()
        controller.wait()
        return {"seconds": time.perf_counter() - start}

    def learn(trainer: Trainer, steps: int) -> dict[str, Any]:
        seconds, words = controller.run(steps)
        return {"seconds": seconds, "words": words}

    worker.COMMANDS.update(prepare=prepare, learn=learn)
    worker.serve(make)  # type: ignore[arg-type]  # it uses only the `packages` of a peer
