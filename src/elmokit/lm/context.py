"""The outputs of the network from which each word of a sentence is predicted.

A sentence is read as `<S> w1 … wn </S>`. The forward half of the top layer at `<S>, w1 … wn`
predicts `w1 … wn, </S>`; the backward half at `w1 … wn, </S>` predicts `<S>, w1 … wn`.

The initial state of a sentence follows the model's state policy. With `carry` the sentences are
read as one stream, as in the training of bilm-tf: both directions continue from sentence to
sentence in the order of the text, the backward one reading each sentence from its end, and neither
reads the mark that it predicts last.

Nothing here depends on the vocabulary. Shape letters: N predictions, n + 1 per sentence and
direction; T words of a sentence; P width; D = 2P.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import WINDOW_WORDS, Elmo
from elmokit.engine.batching import plan_batches, windows


class Context(NamedTuple):
    """Some sentences and the outputs that predict their words, sentence after sentence."""

    sentences: list[Sequence[str]]
    forward_NP: FloatArray
    """Row i of a sentence predicts its word i, counted from 0; the last row predicts `</S>`."""
    backward_NP: FloatArray
    """Row i of a sentence predicts its word i − 1; the first row predicts `<S>`."""


def read_contexts(elmo: Elmo, sentences: Iterable[Sequence[str]]) -> Iterator[Context]:
    """Yield the contexts of all sentences that have words, in order and in bounded memory."""
    streams = State.zeros(elmo.config, rows=2)
    width = elmo.config.lstm.width
    for window in windows((words for words in sentences if words), WINDOW_WORDS):
        if elmo.state == "carry":
            tops, streams = _read_as_stream(elmo, window, streams)
        else:
            tops = _read_separately(elmo, window)
        yield Context(
            window,
            np.concatenate([forward[:, :width] for forward, _ in tops]),
            np.concatenate([backward[:, width:] for _, backward in tops]),
        )


_TopLayers = tuple[FloatArray, FloatArray]
"""The top layer (n + 1, D) at `<S>, w1 … wn`, and at `w1 … wn, </S>`."""


def _read_separately(elmo: Elmo, window: list[Sequence[str]]) -> list[_TopLayers]:
    """Read every sentence from the initial state, in batches of similar lengths."""
    runner = elmo._runner
    begin, end = runner.marks
    start = elmo.initial_state()
    tops: dict[int, _TopLayers] = {}
    for batch in plan_batches([len(words) + 2 for words in window]):
        sequences = [(begin, *window[i], end) for i in batch]
        outputs, _ = runner.run_unmarked(sequences, start.repeat(len(batch)), _top)
        tops.update((i, (x_TD[:-1], x_TD[1:])) for i, x_TD in zip(batch, outputs, strict=True))
    return [tops[i] for i in range(len(window))]


def _read_as_stream(
    elmo: Elmo, window: list[Sequence[str]], streams: State
) -> tuple[list[_TopLayers], State]:
    """Read the sentences in order; row 0 is the forward stream, row 1 the backward stream."""
    runner = elmo._runner
    begin, end = runner.marks
    tops: list[_TopLayers] = []
    for words in window:
        sequences = [(begin, *words), (*words, end)]
        (forward, backward), streams = runner.run_unmarked(sequences, streams, _top)
        tops.append((forward, backward))
    return tops, streams


def _top(layers_LND: FloatArray) -> FloatArray:
    top_ND: FloatArray = layers_LND[-1]
    return top_ND
