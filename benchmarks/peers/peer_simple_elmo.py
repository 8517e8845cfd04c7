"""simple_elmo 0.9.2 as a peer: `ElmoModel.load` and `get_elmo_vectors` on TensorFlow 2.15.

It contains bilm-tf's graph, so it runs what AllenNLP rejects: no skip connections, no projection
if the sizes are equal, no highways, other word lengths.

State: one TensorFlow variable per layer and direction, with `max_batch_size` rows. A run reads and
replaces the first B rows. Called as documented, `get_elmo_vectors(texts)` opens a new session and
initializes all variables, so every call starts from zero, *then* runs its first batch once as a
warm-up (`warmup=True`) and computes the vectors from the resulting state; the batches of one call
carry the state. Called with `session=`, nothing is initialized and the state stays in the session.
Here one session is kept (reading the weights again in every call would be unfair to it), without
warm-up; `reset` sets the state variables to zero.

Padding: `get_elmo_vectors` returns float64, padded to the longest text. Within a batch, layer 0
(and so the average) is not zero at the padding, since the network runs over the mask character too.
`get_elmo_vector_average` divides by the padded length and includes the padding, and with
layers="all" confuses the layer axis with the word axis; it is not used here.

    ~/.cache/elmokit/peers/simple_elmo/bin/python benchmarks/peers/peer_simple_elmo.py
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker import Sentences, serve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from worker import Floats

LAYERS = ("all", "average")


class SimpleElmo:
    """Runs `simple_elmo.ElmoModel` in one session."""

    packages: tuple[str, ...] = ("simple_elmo", "tensorflow-cpu", "numpy", "h5py")

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        # Must come first: simple_elmo sets the root logger to INFO if it is not configured.
        logging.basicConfig(level=logging.WARNING)
        import simple_elmo
        import tensorflow
        from simple_elmo.elmo import weight_layers

        self._model_class = simple_elmo.ElmoModel
        self._tf = tensorflow.compat.v1
        self._weight_layers = weight_layers
        self._session: Any = None

    def load(self, model: Path, threads: int, batch_size: int) -> None:
        """Build a new graph, open a session, and read the weights."""
        tf = self._tf
        if self._session is not None:
            self._session.close()
        # Two models cannot share a graph: their variables have the same names.
        tf.reset_default_graph()
        self._model = self._model_class()
        self._model.load(str(model), max_batch_size=batch_size)
        self._largest = batch_size
        # What `get_elmo_vectors` does if it is called without a session.
        self._inputs = {
            layers: self._weight_layers(
                "input", self._model.sentence_embeddings_op, use_layers=layers
            )
            for layers in LAYERS
        }
        config = tf.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        )
        self._session = tf.Session(config=config)
        self._session.run(tf.global_variables_initializer())
        self._states = [v for v in tf.global_variables() if v.name.startswith("bilm/Variable")]
        self._zero = tf.variables_initializer(self._states)

    def reset(self) -> None:
        """Set the state variables to zero."""
        self._session.run(self._zero)

    def embed(self, sentences: Sentences, batch_size: int, layers: str) -> list[Floats]:
        """Call `get_elmo_vectors`, which makes its own batches."""
        if batch_size > self._largest:
            raise ValueError(
                f"the batch size is {batch_size}; the model was loaded for at most {self._largest}"
            )
        self._model.batch_size = batch_size
        self._model.elmo_sentence_input = self._inputs[layers]
        return [
            self._model.get_elmo_vectors(
                sentences, warmup=False, layers=layers, session=self._session
            )
        ]

    def state(self) -> tuple[Floats, Floats]:
        """Return the carried states; its variables are ordered by direction, layer, cell/hidden."""
        import numpy as np

        values = self._session.run(self._states)
        cell, hidden = (
            np.stack(values[kind::2]).reshape(2, -1, *values[kind].shape).swapaxes(0, 1)
            for kind in range(2)
        )
        return hidden, cell

    def characters(self, words: Sequence[str]) -> NDArray[np.integer[Any]]:
        """Return the ids that its batcher computes for these words, without the sentence marks."""
        ids: NDArray[np.integer[Any]] = self._model.batcher.batch_sentences([words])[0, 1:-1]
        return ids


if __name__ == "__main__":
    serve(SimpleElmo)
