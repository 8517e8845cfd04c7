"""One word on its way through the network, with every number on the way.

It computes what `engine/reference.py` computes, for one sentence, and keeps what that forgets: the
filters before and after the highway layers, the gates and the cells. Shape letters: C characters,
E character embedding, F filters, P width, H cells, T words with the two sentence marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from elmokit.bilm.weights import DIRECTIONS, FORGET_BIAS, FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.text.characters import BEGIN_WORD, END_WORD, PADDING

GATES = ("input", "candidate", "forget", "output")
"""The gates in the order of the weights: i, j, f, o."""

_WEIGHTS: WeakKeyDictionary[Elmo, dict[str, FloatArray]] = WeakKeyDictionary()
"""The weights of each model as float32, without the softmax."""


def trace_word(
    elmo: Elmo, words: Sequence[str], position: int
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Return facts about a word as a JSON object, and the numbers of every stage by name.

    The arrays are `embedding` (C, E), `filters` (F,), `windows` (F,): where each filter matches
    best; `highway.K.gate` and `highway.K.out` (F,), `word` (P,); and for both directions and each
    LSTM layer `forward.K.input`, … (the gates, `cell` and `memory`: the cell before, (H,)) and
    `forward.K.out` (P,).

    Args:
        elmo: The model.
        words: Words of the sentence.
        position: Index of the word in it.
    """
    if not 0 <= position < len(words):
        raise InputError(f"position is {position}; expected 0 to {len(words) - 1}")
    weights = _float_weights(elmo)
    fields, arrays = _trace_characters(elmo, weights, words[position])
    begin, end = elmo._runner.marks
    marked = [begin, *words, end]
    distinct = list(dict.fromkeys(marked))
    vectors_UP = elmo._runner.word_vectors(distinct)
    x_TP = vectors_UP[[distinct.index(word) for word in marked]]
    arrays["word"] = x_TP[position + 1]
    state = elmo.initial_state()
    # The products are too small to be divided: waiting for other threads would take longer.
    with _blas().limit(limits=1, user_api="blas"):
        for side, direction in enumerate(DIRECTIONS):
            reads = x_TP if side == 0 else x_TP[::-1]
            step = position + 1 if side == 0 else len(words) - position
            for layer in range(elmo.config.lstm.layers):
                start = state.hidden[layer, side, 0], state.cell[layer, side, 0]
                reads, kept = _trace_lstm(elmo, weights, f"{direction}.{layer}", reads, start, step)
                arrays |= {f"{direction}.{layer}.{name}": array for name, array in kept.items()}
    return fields, arrays


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _float_weights(elmo: Elmo) -> dict[str, FloatArray]:
    if elmo not in _WEIGHTS:
        _WEIGHTS[elmo] = {
            name: np.ascontiguousarray(array, np.float32)
            for name, array in elmo.bilm.weights.items()
            if not name.startswith(("softmax.", "words."))
        }
    return _WEIGHTS[elmo]


def _trace_characters(
    elmo: Elmo, weights: dict[str, FloatArray], word: str
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    cnn = elmo.config.char_cnn
    ids_UC, lengths_U = elmo.bilm.characters.encode([word])
    length = int(lengths_U[0])
    ids = ids_UC[0].tolist()
    chars_CE = weights["characters.embedding"][ids]
    pooled, places = [], []
    for i, (width, count) in enumerate(cnn.filters):
        # Windows that start after the word see only padding and are all equal: one is enough.
        windows = min(length + 1, len(ids) - width + 1)
        stacked = np.stack([chars_CE[k : k + width].ravel() for k in range(windows)])
        kernel = weights[f"characters.convolution.{i}.weight"].reshape(-1, count)
        scores = stacked @ kernel
        pooled.append(scores.max(axis=0) + weights[f"characters.convolution.{i}.bias"])
        places.append(scores.argmax(axis=0))
    x_F = np.concatenate(pooled)
    x_F = np.maximum(x_F, 0) if cnn.activation == "relu" else np.tanh(x_F)
    arrays: dict[str, FloatArray] = {
        "embedding": chars_CE[:length],
        "filters": x_F,
        "windows": np.concatenate(places).astype(np.float32),
    }
    for k in range(cnn.highways):
        name = f"characters.highway.{k}"
        gate = x_F @ weights[f"{name}.carry.weight"] + weights[f"{name}.carry.bias"]
        gate_F = _sigmoid(gate)
        new_F = x_F @ weights[f"{name}.transform.weight"] + weights[f"{name}.transform.bias"]
        x_F = gate_F * np.maximum(new_F, 0) + (1 - gate_F) * x_F
        arrays[f"highway.{k}.gate"], arrays[f"highway.{k}.out"] = gate_F, x_F
    fields = {
        "characters": [_label(elmo, i) for i in ids[:length]],
        "ids": ids[:length],
        "filters": [list(pair) for pair in cnn.filters],
        "truncated": elmo.bilm.characters.length(word) > elmo.bilm.characters.longest_word,
    }
    return fields, arrays


def _label(elmo: Elmo, i: int) -> str:
    """Return how a character id is shown: ‹ and › are the marks of a word, · is padding."""
    if elmo.bilm.alphabet is not None:
        return {"<bow>": "›", "<eow>": "‹", "<pad>": "·"}.get(
            elmo.bilm.alphabet[i], elmo.bilm.alphabet[i]
        )
    if 32 < i < 127:
        return chr(i)
    return {BEGIN_WORD: "‹", END_WORD: "›", PADDING: "·"}.get(i, f"{i:02x}" if i < 256 else "S")


def _trace_lstm(
    elmo: Elmo,
    weights: dict[str, FloatArray],
    name: str,
    x_TP: FloatArray,
    start: tuple[FloatArray, FloatArray],
    step: int,
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the outputs of one layer in one direction, and all numbers of one step."""
    lstm = elmo.config.lstm
    h_P, c_H = start
    gates_T = x_TP @ weights[f"{name}.input.weight"] + weights[f"{name}.bias"]
    projection = weights.get(f"{name}.projection.weight")
    skip = lstm.skip and not name.endswith(".0")
    out_TP = np.empty_like(x_TP)
    kept: dict[str, FloatArray] = {}
    for t in range(len(x_TP)):
        before_H = c_H
        i, j, f, o = np.split(gates_T[t] + h_P @ weights[f"{name}.recurrent.weight"], 4)
        i, j, f, o = _sigmoid(i), np.tanh(j), _sigmoid(f + np.float32(FORGET_BIAS)), _sigmoid(o)
        c_H = f * before_H + i * j
        if lstm.cell_clip is not None:
            c_H = np.clip(c_H, -lstm.cell_clip, lstm.cell_clip)
        h_P = o * np.tanh(c_H)
        if projection is not None:
            h_P = h_P @ projection
            if lstm.projection_clip is not None:
                h_P = np.clip(h_P, -lstm.projection_clip, lstm.projection_clip)
        out_TP[t] = h_P + x_TP[t] if skip else h_P
        if t == step:
            kept = dict(zip(GATES, (i, j, f, o), strict=True))
            kept |= {"memory": before_H, "cell": c_H, "out": out_TP[t].copy()}
    return out_TP, kept


def _sigmoid(x: FloatArray) -> FloatArray:
    result: FloatArray = (np.tanh(x * np.float32(0.5)) + 1) * np.float32(0.5)
    return result
