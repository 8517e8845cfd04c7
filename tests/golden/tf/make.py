"""Make the golden files of TensorFlow checkpoints and of simple_elmo, in its environment.

    ~/.cache/elmokit/peers/simple_elmo/bin/python tests/golden/tf/make.py

Checkpoints, each a directory with options.json and values.npz (every tensor of the model by its
TensorFlow name, as read by TensorFlow):

    trained     simple_elmo's own training loop: `checkpoint`, vocab.txt, Adagrad slots, global_step
    one_layer   the same with one layer and no projections, whose names lack `multi_rnn_cell`
    sharded     the variables on two devices, Saver(sharded=True): two data files
    sliced      partitioned variables: tensors in several slices

Outputs of simple_elmo 0.9.2, for `compat/simple_elmo.py` and `formats/token_cache.py`:

    substitutes.json   get_elmo_substitutes on `sharded`, unchanged and with carried LSTM state
    vectors.npz        get_elmo_vectors and get_elmo_vector_average on ../models/plain
    tokens.hdf5        dump_token_embeddings on ../models/plain for the words of tokens.txt
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.basicConfig(level=logging.WARNING)

import numpy as np  # noqa: E402
import simple_elmo  # noqa: E402
import tensorflow  # noqa: E402
from simple_elmo import training  # noqa: E402
from simple_elmo.data import BidirectionalLMDataset  # noqa: E402
from simple_elmo.model import dump_token_embeddings  # noqa: E402
from simple_elmo.training import (  # noqa: E402
    LanguageModel,
    _get_feed_dict_from_x,
    load_vocab,
    pack_encoded,
    train,
)

HERE = Path(__file__).parent.resolve()
PLAIN = HERE.parent / "models" / "plain"
tf = tensorflow.compat.v1

WORDS = "<S> </S> <UNK> the . she went to bank of river a dog сидит Grüße naïve".split()
CORPUS = """she went to the bank of the river .
the dog went .
a naïve dog сидит .
Grüße to the unheard-of dog
"""
TEXTS = [
    ["She", "went", "to", "the", "bank", "."],
    ["Yes"],
    ["the", "river", "bank"],
    [],
    ["Grüße", "aus", "Москва", "及び", "東京"],
]
EQUAL = [["She", "went", "home"], ["dogs", "may", "bark"], ["nobody", "knows", "why"]]
SUBSTITUTED = ["she went to the bank .", "the strange dog", "a dog сидит of naïve Grüße"]

OPTIONS: dict[str, Any] = {
    "bidirectional": True,
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 3},
        "filters": [[1, 3], [2, 4]],
        "max_characters_per_token": 12,
        "n_characters": 261,
        "n_highway": 1,
    },
    "dropout": 0.1,
    "lstm": {
        "cell_clip": 3,
        "dim": 6,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 4,
        "use_skip_connections": True,
    },
    "all_clip_norm_val": 10.0,
    "n_epochs": 1,
    "n_train_tokens": 24,
    "batch_size": 2,
    "n_tokens_vocab": len(WORDS),
    "unroll_steps": 4,
    "n_negative_samples_batch": 5,
}
BARE: dict[str, Any] = OPTIONS | {
    "char_cnn": {
        "activation": "tanh",
        "embedding": {"dim": 2},
        "filters": [[1, 2], [3, 3]],
        "max_characters_per_token": 12,
        "n_characters": 261,
    },
    "lstm": {"dim": 5, "n_layers": 1, "projection_dim": 5},
}


def fresh(resource_variables: bool = True) -> None:
    """Start a new graph with fixed seeds."""
    tf.reset_default_graph()
    tf.disable_eager_execution()
    (tf.enable_resource_variables if resource_variables else tf.disable_resource_variables)()
    tf.set_random_seed(7)
    random.seed(7)
    np.random.seed(7)


def write_values(directory: Path) -> None:
    """Write values.npz: the tensors that TensorFlow reads from the checkpoint."""
    prefix = next(directory.glob("*.index")).with_suffix("")
    reader = tensorflow.train.load_checkpoint(str(prefix))
    names = [n for n in reader.get_variable_to_shape_map() if n.startswith("lm/")]
    values = {n: reader.get_tensor(n) for n in sorted(names) if not n.endswith("Adagrad")}
    np.savez_compressed(directory / "values.npz", **values)
    print(directory.name, *(f"{f.name}: {f.stat().st_size}" for f in sorted(directory.iterdir())))


def trained(name: str, options: dict[str, Any]) -> None:
    """Write a checkpoint with simple_elmo's training loop."""
    fresh(resource_variables=False)  # the loop uses `variable += value`
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(directory)  # so that `checkpoint` contains no absolute path
        corpus = Path(folder) / "corpus"
        corpus.write_text(CORPUS)
        vocabulary = load_vocab("vocab.txt", options["char_cnn"]["max_characters_per_token"])
        data = BidirectionalLMDataset(str(corpus), vocabulary)
        train(options, data, 1, ".", folder)
    for meta in directory.glob("*.meta"):
        meta.unlink()
    write_values(directory)


def partition(shape: Any, dtype: Any) -> list[int]:
    """Split the character table into three slices of rows, the softmax into two of columns."""
    cuts = {(261, 3): [3, 1], (len(WORDS), 4): [1, 2]}
    return cuts.get(tuple(shape.as_list()), [1] * len(shape))


def saved(name: str, sharded: bool, sliced: bool) -> None:
    """Write a checkpoint of random weights, on two devices or split into slices."""
    fresh()
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "options.json").write_text(json.dumps(OPTIONS))
    (directory / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    turns = {"number": 0}

    def device(operation: Any) -> str:
        if operation.type in ("VarHandleOp", "VariableV2"):
            turns["number"] += 1
        return f"/cpu:{turns['number'] % 2 if sharded else 0}"

    training.DTYPE = tf.float32  # a partitioner needs the dtype itself, not its name
    with tf.device(device), tf.variable_scope("lm", partitioner=partition if sliced else None):
        LanguageModel(OPTIONS, False)
    config = tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        # Three times the initial weights, so that words and scores differ clearly.
        session.run([tf.assign(v, v * 3) for v in tf.trainable_variables()])
        os.chdir(directory)
        tf.train.Saver(sharded=sharded).save(session, "./model.ckpt", 30, write_meta_graph=False)
    write_values(directory)


def substitutes() -> None:
    """Write substitutes.json, one sentence at a time, since larger batches lose sentences."""
    results: dict[str, Any] = {"sentences": SUBSTITUTED}
    fresh()
    model = simple_elmo.ElmoModel()
    model.load(str(HERE / "sharded"), max_batch_size=1, full=True)
    results["with_marks"] = model.get_elmo_substitutes(SUBSTITUTED, topn=4, nodelimiters=False)
    results["without_marks"] = model.get_elmo_substitutes(SUBSTITUTED, topn=4)

    # All scores that its loop would compute if it carried the state.
    results["scores_in_context"] = []
    for sentence in SUBSTITUTED:
        state, scores = model.init_state_values, []
        for batch in pack_encoded([sentence], model.vocab, 1):
            feed = dict(zip(model.init_state_tensors, state, strict=True))
            feed.update(_get_feed_dict_from_x(batch, 0, 1, model.model, True, True))
            state, both = model.session.run(
                [model.final_state_tensors, model.model.output_scores], feed_dict=feed
            )
            scores.append([direction[0].tolist() for direction in both])
        results["scores_in_context"].append(scores)
    text = json.dumps(results, ensure_ascii=False)
    (HERE / "substitutes.json").write_text(text + "\n", encoding="utf-8")


def vectors() -> None:
    """Write vectors.npz, in batches of two, so that the state is carried and rows are skipped."""
    results: dict[str, Any] = {}
    for layers in ("all", "average", "top"):
        fresh()
        model = simple_elmo.ElmoModel()
        model.load(str(PLAIN), max_batch_size=2)
        for warmup in (True, False):
            key = f"{layers}_{'warm' if warmup else 'cold'}"
            results[key] = model.get_elmo_vectors(TEXTS, warmup=warmup, layers=layers)
            if layers != "all":  # it confuses the axes
                results[f"mean_{key}"] = model.get_elmo_vector_average(
                    EQUAL, warmup=warmup, layers=layers
                )
        if layers == "average":
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                for call in range(2):
                    results[f"session_{call}"] = model.get_elmo_vectors(
                        TEXTS[:3], warmup=call == 0, session=session
                    )
    np.savez_compressed(HERE / "vectors.npz", **results)
    (HERE / "texts.json").write_text(json.dumps({"texts": TEXTS, "equal": EQUAL}) + "\n")


def tokens() -> None:
    """Write tokens.hdf5 and tokens.txt."""
    fresh()
    (HERE / "tokens.txt").write_text("\n".join([*WORDS, "x" * 60]) + "\n")
    files = (HERE / "tokens.txt", PLAIN / "options.json", PLAIN / "weights.hdf5")
    dump_token_embeddings(*map(str, files), str(HERE / "tokens.hdf5"))


def versions() -> None:
    """Write versions.json: the versions of the packages."""
    names = ("simple_elmo", "tensorflow-cpu", "numpy", "h5py")
    results = {name: importlib.metadata.version(name) for name in names}
    (HERE / "versions.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    versions()
    trained("trained", OPTIONS)
    trained("one_layer", BARE)
    saved("sharded", sharded=True, sliced=False)
    saved("sliced", sharded=False, sliced=True)
    substitutes()
    vectors()
    tokens()
