"""Drop-in replacement for the `Embedder` of ELMoForManyLangs.

    from elmokit.compat.many_langs import Embedder

Arguments, shapes and values are the same, with one difference. The original carries the state of
its LSTMs from batch to batch and runs the batches of a call in random order, so that its vectors
differ from call to call, except for the first batch after loading. Here every sentence starts from
an all-zero state, like that first batch.

The model may be a directory of ELMoForManyLangs (reading it needs torch), or any other model.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmokit.bilm.weights import FloatArray
from elmokit.compat.sentences import as_word_lists
from elmokit.elmo import Elmo
from elmokit.errors import InputError

AVERAGE, ALL = -1, -2
"""Values of `output_layer` that do not select a layer."""


class OutputLayerError(InputError, IndexError):
    """The model has no such layer; the original raises an `IndexError`."""


class Embedder:
    """Computes the vectors of tokenized sentences."""

    def __init__(self, model_dir: str | Path, batch_size: int = 64) -> None:
        """Load a model.

        Args:
            model_dir: Path or name of the model.
            batch_size: Has no effect, since batches are formed by length; kept as an attribute.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size is {batch_size!r}; expected an integer of 1 or more")
        self.model_dir = model_dir
        self.batch_size = batch_size
        loaded = Elmo.load(model_dir, state="zero")
        # The original averages the layers, so a mix that was saved with the model is dropped.
        unmixed = loaded.bilm.mix is None
        self.elmo = loaded if unmixed else Elmo(replace(loaded.bilm, mix=None), state="zero")

    def sents2elmo(
        self, sents: Iterable[Sequence[str]], output_layer: Any = AVERAGE
    ) -> list[FloatArray]:
        """Return one array per sentence: (T, D), or (L+1, T, D) for all layers.

        Args:
            sents: Sentences as lists of words. A string is a list of its characters, as in the
                original; a warning says so.
            output_layer: 0 for the word encoder, 1 and up for the layers of the LSTM, -1 for the
                average of all layers, -2 for all of them. Anything else selects from the array of
                all layers as an index of NumPy, as in the original: -3 is the word encoder, [0, 2]
                are two layers.
        """
        sentences = as_word_lists(sents, "sents")
        if _equals(output_layer, AVERAGE):
            return self.elmo.embed(sentences, "mix")
        layers = self.elmo.layers
        if type(output_layer) is int and -layers <= output_layer < layers and output_layer != ALL:
            return self.elmo.embed(sentences, output_layer)
        every = self.elmo.embed(sentences, "all")
        if _equals(output_layer, ALL):
            return every
        try:
            return [layers_LTD[output_layer] for layers_LTD in every]
        except IndexError:
            raise OutputLayerError(
                f"output_layer is {output_layer!r}; this model has {layers} layers, so "
                f"expected 0 to {layers - 1}, {AVERAGE} for their average, or {ALL} for "
                "all of them"
            ) from None


def _equals(value: object, number: int) -> bool:
    """Whether a value is this number; not an array, which would compare its elements."""
    return isinstance(value, numbers.Real) and value == number
