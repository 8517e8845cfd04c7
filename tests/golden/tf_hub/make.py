"""Make a tiny module with the variables of TensorFlow Hub's ELMo, and its outputs, with TensorFlow.

    pip install tensorflow-cpu==2.15.1     # in an environment of its own
    python tests/golden/tf_hub/make.py

`module/` is a SavedModel whose variables have the names of `google/elmo`, made by the same calls:
each LSTM layer is a `dynamic_rnn` of its own in the scope `RNN_0/RNN/MultiRNNCell/Cell0`.
vectors.npz has the outputs `word_emb`, `lstm_outputs1`, `lstm_outputs2` and `elmo` for SENTENCES,
one sentence after another, each from a state of zeros.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow

HERE = Path(__file__).parent.resolve()
SENTENCES = ["the cat is on the mat", "dogs are in the fog", "Grüße"]
FILTERS = ((1, 3), (2, 4), (3, 5))
WIDTH, CELLS, CHARACTERS, DIM = 6, 8, 50, 4
tf = tensorflow.compat.v1
tf.disable_eager_execution()


def character_ids(sentence: str) -> np.ndarray:
    """Return the ids of a sentence with its marks, (1, T+2, 50), shifted by one."""
    rows = [[256], *(list(word.encode())[: CHARACTERS - 2] for word in sentence.split()), [257]]
    marked = [[258, *row, 259] for row in rows]
    return np.array([[row + [260] * (CHARACTERS - len(row)) for row in marked]]) + 1


def variable(name: str, shape: tuple[int, ...]) -> tensorflow.Tensor:
    """Return a new random variable."""
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(0, 0.5))


def network(ids: tensorflow.Tensor) -> dict[str, tensorflow.Tensor]:
    """Return the outputs of the module for one sentence with its marks."""
    with tf.variable_scope("bilm"):
        table = variable("char_embed", (262, DIM))
        chars = tf.nn.embedding_lookup(table, ids[0])  # (T, C, E)
        with tf.variable_scope("CNN"):
            pooled = []
            for i, (span, count) in enumerate(FILTERS):
                kernel = variable(f"W_cnn_{i}", (1, span, DIM, count))
                bias = variable(f"b_cnn_{i}", (count,))
                scores = tf.nn.conv2d(chars[:, None], kernel, [1, 1, 1, 1], "VALID") + bias
                pooled.append(tf.nn.relu(tf.reduce_max(scores, axis=[1, 2])))
        x = tf.concat(pooled, axis=1)
        size = sum(count for _, count in FILTERS)
        with tf.variable_scope("CNN_high_0"):
            carry = tf.nn.sigmoid(
                x @ variable("W_carry", (size, size)) + variable("b_carry", (size,))
            )
            new = tf.nn.relu(
                x @ variable("W_transform", (size, size)) + variable("b_transform", (size,))
            )
            x = carry * new + (1 - carry) * x
        with tf.variable_scope("CNN_proj"):
            x = x @ variable("W_proj", (size, WIDTH)) + variable("b_proj", (WIDTH,))
        sides = []
        for side in range(2):
            layer, outputs = x[None] if side == 0 else x[None, ::-1], []
            for depth in range(2):
                with tf.variable_scope(f"RNN_{side}/RNN/MultiRNNCell/Cell{depth}"):
                    cell = tf.nn.rnn_cell.LSTMCell(
                        CELLS, num_proj=WIDTH, cell_clip=3.0, proj_clip=3.0
                    )
                    out, _ = tf.nn.dynamic_rnn(cell, layer, dtype=tf.float32)
                layer = out + layer if depth else out
                outputs.append(layer[0] if side == 0 else layer[0, ::-1])
            sides.append(outputs)
    layers = [tf.concat([x, x], 1)] + [tf.concat(pair, 1) for pair in zip(*sides, strict=True)]
    with tf.variable_scope("aggregation"):
        weights = tf.nn.softmax(variable("weights", (3,)))
        scaling = tf.get_variable("scaling", initializer=1.25)
    mixed = scaling * sum(weights[j] * layer for j, layer in enumerate(layers))
    return {
        "word_emb": x[1:-1],
        "lstm_outputs1": layers[1][1:-1],
        "lstm_outputs2": layers[2][1:-1],
        "elmo": mixed[1:-1],
    }


def main() -> None:
    """Write `module/` and vectors.npz."""
    tf.set_random_seed(17)
    ids = tf.placeholder(tf.int32, (1, None, CHARACTERS))
    outputs = network(ids)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run(outputs, {ids: character_ids(s)}) for s in SENTENCES]
        target = HERE / "module"
        shutil.rmtree(target, ignore_errors=True)
        builder = tf.saved_model.Builder(str(target))
        builder.add_meta_graph_and_variables(session, [])
        builder.save()
    shutil.rmtree(target / "assets", ignore_errors=True)
    (target / "saved_model.pb").write_bytes(b"")  # the graph is large and is not read
    (target / "tfhub_module.pb").write_bytes(b"\x08\x03")  # as TensorFlow Hub marks its modules
    stacked = {name: np.concatenate([one[name] for one in found]) for name in outputs}
    np.savez(HERE / "vectors.npz", **stacked)


if __name__ == "__main__":
    main()
