"""simple_elmo 0.9.2's trainer: its own `train` and data set, on TensorFlow 2.15.

    ~/.cache/elmokit/peers/simple_elmo/bin/python benchmarks/training/simple_elmo_trainer.py

(see trainer.py). The package carries bilm-tf's training code and calls it for nothing, but it is
all there: `simple_elmo.training.train` builds the graph, opens its session and loops over what
`simple_elmo.data.BidirectionalLMDataset` yields. The loop is watched from there: whoever makes the
batches knows when a step begins. One "GPU", which without one is all cores of the CPU.

Nothing of it is changed. `text.py` writes what it reads: options, vocabulary, text.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer import Between, serve


class SimpleElmoTrainer:
    """Drives `simple_elmo.training.train`."""

    packages: tuple[str, ...] = ("simple_elmo", "tensorflow-cpu", "numpy")

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow
        from simple_elmo import data, training

        # Its code is of TensorFlow 1: graphs, and variables that can be added to.
        tensorflow.compat.v1.disable_eager_execution()
        tensorflow.compat.v1.disable_resource_variables()
        self._data, self._training = data, training

    def train(self, directory: Path, size: str, cores: int, between: Between) -> None:
        """Its default session takes all the cores that this process may use."""
        options = json.loads((directory / f"{size}.json").read_text())
        length = options["char_cnn"]["max_characters_per_token"]
        vocabulary = self._data.UnicodeCharsVocabulary(str(directory / "vocab.txt"), length)
        text = self._data.BidirectionalLMDataset(
            str(directory / "text"), vocabulary, shuffle_on_load=True
        )
        with tempfile.TemporaryDirectory() as out:
            self._training.train(options, Watched(text, between), 1, out, out)


class Watched:
    """A data set that comes by the gate before it makes a batch."""

    def __init__(self, text: Any, between: Between) -> None:
        self._text, self._between = text, between

    def iter_batches(self, lanes: int, window: int) -> Iterator[Any]:
        """As its loop asks for them."""
        batches = self._text.iter_batches(lanes, window)
        self._between(0)
        for batch in batches:
            yield batch
            self._between(lanes * window)


if __name__ == "__main__":
    serve(SimpleElmoTrainer)
