"""What the network makes of the words before each place of a sentence, and of those behind it.

A sentence is read as `<S> w1 … wn </S>`. The forward half of the top layer at `<S>, w1 … wn` is
what predicts `w1 … wn, </S>`; its backward half at `w1 … wn, </S>` predicts `<S>, w1 … wn`.

Where a sentence starts from is the model's policy. `carry` reads the sentences as one stream, as
bilm-tf trains: both directions go from sentence to sentence in the order of the text, the
backward one reading each from its end; and neither reads the mark that it predicts last.

Knows nothing about the vocabulary. Shape letters: N places of all sentences, n + 1 for each;
T words of a sentence; P width; D = 2P.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import WINDOW_WORDS, Elmo
from elmokit.engine.batching import plan


class Context(NamedTuple):
    """Some sentences, and what predicts them: rows lie sentence after sentence."""

    sentences: list[Sequence[str]]
    forward_NP: FloatArray
    """Row i of a sentence predicts its word i, counted from 0; the last row `</S>`."""
    backward_NP: FloatArray
    """Row i of a sentence predicts its word i − 1; the first row `<S>`."""


def contexts(elmo: Elmo, sentences: Iterable[Sequence[str]]) -> Iterator[Context]:
    """Sentences in order, a window after another, in bounded memory."""
    streams = State.zeros(elmo.config, rows=2)
    width = elmo.config.lstm.width
    for window in _windows(sentences):
        if elmo.state == "carry":
            tops, streams = _streamed(elmo, window, streams)
        else:
            tops = _single(elmo, window)
        yield Context(
            window,
            np.concatenate([before[:, :width] for before, _ in tops]),
            np.concatenate([behind[:, width:] for _, behind in tops]),
        )


Halves = tuple[FloatArray, FloatArray]
"""The top layer (n + 1, D) at `<S>, w1 … wn`, and at `w1 … wn, </S>`."""


def _single(elmo: Elmo, window: list[Sequence[str]]) -> list[Halves]:
    """Every sentence by itself, those of similar lengths together."""
    runner = elmo._runner
    begin, end = runner.marks
    start = State.zeros(elmo.config) if elmo.state == "zero" else elmo.settled
    tops: dict[int, Halves] = {}
    for batch in plan([len(words) + 2 for words in window]):
        sequences = [(begin, *window[i], end) for i in batch]
        found, _ = runner.read(sequences, start.repeat(len(batch)), _top)
        tops.update((i, (x_TD[:-1], x_TD[1:])) for i, x_TD in zip(batch, found, strict=True))
    return [tops[i] for i in range(len(window))]


def _streamed(
    elmo: Elmo, window: list[Sequence[str]], streams: State
) -> tuple[list[Halves], State]:
    """Each sentence after the one before it. Row 0 is the forward stream, row 1 the backward."""
    runner = elmo._runner
    begin, end = runner.marks
    tops: list[Halves] = []
    for words in window:
        (before, behind), streams = runner.read([(begin, *words), (*words, end)], streams, _top)
        tops.append((before, behind))
    return tops, streams


def _top(layers_LND: FloatArray) -> FloatArray:
    top_ND: FloatArray = layers_LND[-1]
    return top_ND


def _windows(sentences: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    """Sentences in runs of about `WINDOW_WORDS`, those without words left out."""
    window: list[Sequence[str]] = []
    size = 0
    for words in sentences:
        if words:
            window.append(words)
            size += len(words) + 2
        if size >= WINDOW_WORDS:
            yield window
            window, size = [], 0
    if window:
        yield window
