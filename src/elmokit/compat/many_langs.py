"""Drop-in replacement for the `Embedder` of ELMoForManyLangs.

    from elmokit.compat.many_langs import Embedder

Arguments, shapes and values are the same, with one difference. The original carries the state of
its LSTMs from batch to batch and runs the batches of a call in random order, so that its vectors
differ from call to call, except for the first batch after loading. Here every sentence starts from
an all-zero state, like that first batch.

The model may be a directory of ELMoForManyLangs (reading it needs torch), or any other model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import InputError

AVERAGE, ALL = -1, -2
"""Values of `output_layer` that do not select a layer."""


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
        self, sents: Iterable[Sequence[str]], output_layer: int = AVERAGE
    ) -> list[FloatArray]:
        """Return one array per sentence: (T, D), or (L+1, T, D) for all layers.

        Args:
            sents: Sentences as lists of words. A string is a list of its characters, as in the
                original.
            output_layer: 0 for the word encoder, 1 and up for the layers of the LSTM, -1 for the
                average of all layers, -2 for all of them.
        """
        if isinstance(sents, str):
            raise InputError(
                "sents is a string; expected a list of sentences, each a list of words"
            )
        layers: LayerChoice = {AVERAGE: "mix", ALL: "all"}.get(output_layer, output_layer)  # type: ignore[assignment]
        return self.elmo.embed(
            [list(words) if isinstance(words, str) else words for words in sents], layers
        )
