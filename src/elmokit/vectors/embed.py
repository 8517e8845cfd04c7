"""A model and a text to a file of vectors, in one call: what `elmo embed --out` does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import elmokit
from elmokit.elmo import Elmo, Layers, Sentence
from elmokit.vectors import open_writer


class Written(NamedTuple):
    """What came out."""

    sentences: int
    words: int
    resumed: int
    """How many of the sentences an interrupted earlier run had stored."""


def embed_to_file(
    elmo: Elmo,
    sentences: Iterable[Sentence],
    path: str | Path,
    *,
    layers: Layers = "mix",
    dtype: str = "float32",
    restart: bool = False,
    overwrite: bool = False,
    on_sentence: Callable[[Sequence[str]], None] = lambda words: None,
) -> Written:
    """Embed sentences into `path` (.h5, .npz or .parquet), in bounded memory.

    Interrupted and called again with the same arguments, it continues where it stopped.
    `dtype` is that of the file, `"float32"` or `"float16"`; `on_sentence` is told of each one.
    """
    signature = _signature(elmo, layers)
    all_words = iter(elmo.words(sentences))
    count = total = 0
    with open_writer(
        path, signature=signature, dtype=dtype, restart=restart, overwrite=overwrite
    ) as out:
        for words in islice(all_words, out.done):
            out.skip(words)
            if elmo.state == "carry":
                elmo.embed([words])  # stored, but the sentences after it need its state
            on_sentence(words)
            count, total = count + 1, total + len(words)

        for words, vectors in elmo.items(all_words, layers):
            out.write(words, vectors)
            on_sentence(words)
            count, total = count + 1, total + len(words)
        resumed = out.done
    return Written(count, total, resumed)


def _signature(elmo: Elmo, layers: Layers) -> dict[str, Any]:
    """All that determines the vectors, besides the text."""
    signature: dict[str, Any] = {
        "elmokit": elmokit.__version__,
        "model": elmo.bilm.fingerprint,
        "layers": layers,
        "state": elmo.state,
        "dtype": elmo.dtype,
    }
    if layers == "mix":
        signature["mix"] = {"scalars": list(elmo.mix.scalars), "gamma": elmo.mix.gamma}
    if elmo.state == "settled":
        settled = hashlib.sha256(elmo.settled.hidden.tobytes() + elmo.settled.cell.tobytes())
        signature["settled"] = settled.hexdigest()
    return signature
