"""elmokit behind the protocol of the peers, so that it is measured in the same way.

    python benchmarks/peers/peer_elmokit.py [float32|bfloat16|int8|reference]   (see worker.py)

Each batch is one call of `embed`. With a batch size of 0 all sentences are embedded in one call, in
their order, and elmokit makes its own batches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker import Sentences, serve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from worker import Floats

VARIANT = sys.argv[1] if len(sys.argv) > 1 else "float32"


class Elmokit:
    """Runs `elmokit.Elmo`."""

    packages: tuple[str, ...] = ("elmokit", "numpy")

    def __init__(self) -> None:
        if VARIANT == "reference":
            os.environ["ELMOKIT_ENGINE"] = "reference"
        from elmokit import Elmo

        self._class = Elmo

    def load(self, model: Path, threads: int, batch_size: int) -> None:
        """Load the model without embedding anything."""
        dtype = "float32" if VARIANT == "reference" else VARIANT
        self._elmo = self._class.load(model, state="zero", dtype=dtype, threads=threads)

    def reset(self) -> None:
        """Clear the word cache; every sentence starts from the zero state anyway."""
        self._elmo.clear_word_cache()

    def embed(self, sentences: Sentences, batch_size: int, layers: str) -> list[Floats]:
        """Embed consecutive batches; returns one list of unpadded arrays per batch."""
        chosen = "all" if layers == "all" else "mix"
        size = batch_size or len(sentences)
        batches = [sentences[i : i + size] for i in range(0, len(sentences), size)]
        return [self._elmo.embed(batch, layers=chosen) for batch in batches]  # type: ignore[misc]

    def state(self) -> tuple[Floats, Floats]:
        """Raise: elmokit carries no state here."""
        raise NotImplementedError("elmokit is measured without carried state")

    def characters(self, words: Sequence[str]) -> NDArray[np.integer[Any]]:
        """Return the character ids of the words, shifted by one."""
        from elmokit.text.characters import encode_sentences

        return encode_sentences([words])[0]


if __name__ == "__main__":
    serve(Elmokit)
