"""Initial weights from an existing biLM, which may be narrower than the new one.

The new network computes what the old one does, and has room for more: an old unit does not depend
on new ones at first (zeros), a new unit depends on all of them at random. So the first dimensions
of every layer are the old layer, the predictions are the same, and training goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX, FloatArray
from elmokit.errors import ConfigError, InputError
from elmokit.text.vocabulary import Vocabulary


def check_start(start: BiLM, config: BiLMConfig, vocabulary: Vocabulary) -> None:
    """Raise if a model of this architecture and vocabulary cannot start from another one."""
    if any(name not in start.weights for name in SOFTMAX) or start.vocabulary is None:
        raise InputError(
            "the model to start from has no softmax or no vocabulary; expected a model that was "
            "trained by `elmo pretrain` or `elmo finetune`"
        )
    if list(start.vocabulary) != list(vocabulary):
        raise InputError(
            f"the model to start from predicts {len(start.vocabulary):,} words, which are not the "
            f"{len(vocabulary):,} of the corpus; build the corpus with the vocab.txt of the model "
            "(`elmo corpus --vocabulary`)"
        )
    old, new = start.config.lstm, config.lstm
    as_wide = replace(
        start.config, lstm=replace(old, cells=new.cells, width=new.width), extra=config.extra
    )
    grows = (old.cells, old.width) != (new.cells, new.width)
    if (
        as_wide != config
        or old.cells > new.cells
        or old.width > new.width
        or (grows and not (new.projection and config.char_cnn.projection))
    ):
        raise ConfigError(
            "a model can start from one that differs in its LSTM cells and its width only, which "
            f"may be smaller; found {_describe(start.config)}, for {_describe(config)}"
        )


def widen(
    start: Mapping[str, FloatArray], random: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return weights of the shapes of `random` that compute what `start` does.

    Args:
        start: Weights and softmax of the old model.
        random: Initial weights and softmax of the new one.
    """
    weights = {}
    for name, array in random.items():
        grown = np.array(array, np.float32, order="C")
        old = np.ascontiguousarray(start[name], np.float32)
        if old.shape == grown.shape:
            weights[name] = old.copy()
            continue
        to, source = _inputs_by_outputs(name, grown), _inputs_by_outputs(name, old)
        inputs, outputs = source.shape[0], source.shape[-1]
        to[inputs:, ..., :outputs] = 0
        to[:inputs, ..., :outputs] = source
        weights[name] = grown
    return weights


def _inputs_by_outputs(name: str, array: FloatArray) -> FloatArray:
    """Return a view whose first axis has the inputs of a map, and its last axis the outputs."""
    if name == SOFTMAX[0]:
        return array.T
    if name.startswith("characters."):
        return array.reshape(-1, array.shape[-1])
    if name.endswith("projection.weight"):
        return array
    gates = 4
    return array.reshape(-1, gates, array.shape[-1] // gates)  # weights and biases of the gates


def _describe(config: BiLMConfig) -> str:
    lstm, cnn = config.lstm, config.char_cnn
    filters = sum(count for _, count in cnn.filters)
    return f"{lstm.layers} layers of {lstm.cells} cells, width {lstm.width}, {filters} filters"
