"""`Embedder` of ELMoForManyLangs, over ours: `from elmokit.compat.many_langs import Embedder`.

Same arguments, shapes and values, with one difference. The original carries the state of its LSTMs
from batch to batch and runs the batches of a call in a random order, so that its vectors differ
from call to call, except for the first batch after loading. Here every sentence starts as that one
did, from an empty state: the values are those of a fresh `Embedder` with one batch, every time.

The model may be a directory of ELMoForManyLangs (reading it needs torch), or any other model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Layers
from elmokit.errors import InputError

AVERAGE, ALL = -1, -2
"""The numbers of `output_layer` that are no layer."""


class Embedder:
    """Sentences, cut into words already, to vectors."""

    def __init__(self, model_dir: str | Path, batch_size: int = 64) -> None:
        """Load a model. The batch size is kept for whoever reads it: ours is chosen by length."""
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size is {batch_size!r}; expected a whole number from 1 up")
        self.model_dir = model_dir
        self.batch_size = batch_size
        loaded = Elmo.load(model_dir, state="zero")
        # The average is plain here, whatever mix a model was saved with.
        unmixed = loaded.bilm.mix is None
        self.elmo = loaded if unmixed else Elmo(replace(loaded.bilm, mix=None), state="zero")

    def sents2elmo(
        self, sents: Iterable[Sequence[str]], output_layer: int = AVERAGE
    ) -> list[FloatArray]:
        """One array a sentence, in order: (T, D), or (L+1, T, D) for all layers.

        Args:
            sents: sentences as lists of words. A string is taken as the list of its characters, as
                the original takes it.
            output_layer: 0 for the word encoder, 1 and up for the layers of the LSTM, -1 for the
                average of all layers, -2 for all of them.
        """
        if isinstance(sents, str):
            raise InputError(
                "sents is a string; expected a list of sentences, each a list of words"
            )
        layers: Layers = {AVERAGE: "mix", ALL: "all"}.get(output_layer, output_layer)  # type: ignore[assignment]
        return self.elmo.embed(
            [list(words) if isinstance(words, str) else words for words in sents], layers
        )
