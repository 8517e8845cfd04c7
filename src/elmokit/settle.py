"""Giving a model a settled state from text of its own language, as `elmo settle` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from elmokit import formats
from elmokit.bilm.state import State
from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError

WARM_UP_SENTENCES = 100
"""Number of sentences that are read by default."""


class SettledModel(NamedTuple):
    """What `settle_model` has read and written."""

    files: list[Path]
    """The files of the new model."""
    left_out: list[str]
    """Parts of the model that the format cannot store, such as `the softmax`."""
    sentences: int
    """Number of sentences that were read."""
    words: int
    """Number of words that were read."""
    started_from_zeros: bool
    """Whether the model's own settled state was zeros, as if it was trained on single sentences."""


def settle_model(
    model: str | Path,
    sentences: Iterable[Sentence] | None,
    out: str | Path,
    *,
    max_sentences: int | None = WARM_UP_SENTENCES,
    format: str | None = None,
    overwrite: bool = False,
) -> SettledModel:
    """Save a model with the state after reading some text as the start of every sentence.

    The weights stay the same, and so does the fingerprint. The command `elmo settle` does this.

    Args:
        model: The model: a directory, one file of a model, a zip archive, or a name.
        sentences: Text in the language of the model: strings (tokenized) or lists of words. None
            saves a state of zeros, so that a sentence starts as if nothing had been read.
        out: Where to write: a directory, `X.hdf5` (with `X_options.json` beside it) or `X.zip`.
        max_sentences: Number of sentences with words to read; None reads all.
        format: `"native"` or `"allennlp"`; by default the ending of `out` decides, as in
            `convert_model`.
        overwrite: Write even if `out` exists.
    """
    if max_sentences is not None and max_sentences < 1:
        raise InputError(f"max_sentences is {max_sentences}; expected 1 or more, or None for all")
    formats.check_target(out, format, overwrite)  # fail before the model is loaded
    elmo = Elmo.load(model)
    before = elmo.bilm.settled
    warm_up: list[Sequence[str]] = []
    if sentences is None:
        elmo = Elmo(replace(elmo.bilm, settled=State.zeros(elmo.config)))
    else:
        warm_up = list(islice(_non_empty(elmo.words(sentences)), max_sentences))
        elmo.settle(warm_up)
    return SettledModel(
        elmo.save(out, format),
        formats.unsupported_parts(elmo.bilm, out, format),
        len(warm_up),
        sum(map(len, warm_up)),
        before is not None and before.is_zero,
    )


def _non_empty(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    return (words for words in sentences if words)
