"""The trainer of simple_elmo 0.9.2: its own `train` and dataset, on TensorFlow 2.15.

    ~/.cache/elmokit/peers/simple_elmo/bin/python benchmarks/training/simple_elmo_trainer.py

(see trainer_worker.py). The package contains bilm-tf's training code, complete but unused:
`simple_elmo.training.train` builds the graph, opens its session and loops over the batches of
`simple_elmo.data.BidirectionalLMDataset`. Steps are counted in the dataset, which is asked for a
batch when a step begins. It uses one "GPU", which on a machine without one means all cores.

None of its code is changed. `trainer_data.py` writes its input: options, vocabulary, text.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer_worker import StepCallback, serve


class SimpleElmoTrainer:
    """Runs `simple_elmo.training.train`."""

    packages: tuple[str, ...] = ("simple_elmo", "tensorflow-cpu", "numpy")

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow
        from simple_elmo import data, training

        # Its code was written for TensorFlow 1: graphs, and variables that can be added to.
        tensorflow.compat.v1.disable_eager_execution()
        tensorflow.compat.v1.disable_resource_variables()
        self._data, self._training = data, training

    def train(self, directory: Path, size: str, cores: int, on_step: StepCallback) -> None:
        """Train; its default session uses all cores that this process may use."""
        options = json.loads((directory / f"{size}.json").read_text())
        length = options["char_cnn"]["max_characters_per_token"]
        vocabulary = self._data.UnicodeCharsVocabulary(str(directory / "vocab.txt"), length)
        text = self._data.BidirectionalLMDataset(
            str(directory / "text"), vocabulary, shuffle_on_load=True
        )
        with tempfile.TemporaryDirectory() as out:
            self._training.train(options, CountedDataset(text, on_step), 1, out, out)


class CountedDataset:
    """A dataset that calls `on_step` between two batches."""

    def __init__(self, text: Any, on_step: StepCallback) -> None:
        self._text, self._on_step = text, on_step

    def iter_batches(self, lanes: int, window: int) -> Iterator[Any]:
        """Yield the batches of the dataset."""
        batches = self._text.iter_batches(lanes, window)
        self._on_step(0)
        for batch in batches:
            yield batch
            self._on_step(lanes * window)


if __name__ == "__main__":
    serve(SimpleElmoTrainer)
