"""Embedding text into a file of vectors in one call, as `elmo embed --out` does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import elmokit
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.vectors.writer import open_writer


class EmbeddingSummary(NamedTuple):
    """How much a call of `embed_to_file` has written."""

    sentences: int
    """Number of sentences in the file."""
    words: int
    """Number of words in the file."""
    resumed: int
    """Number of sentences that an interrupted earlier run had already stored."""


def embed_to_file(
    elmo: Elmo,
    sentences: Iterable[Sentence],
    path: str | Path,
    *,
    layers: LayerChoice = "mix",
    dtype: str = "float32",
    restart: bool = False,
    overwrite: bool = False,
    on_sentence: Callable[[Sequence[str]], None] = lambda words: None,
) -> EmbeddingSummary:
    """Embed sentences into a file, in bounded memory.

    If it is interrupted, call it again with the same arguments: it continues where it stopped. The
    command `elmo embed --out` does this.

    Args:
        elmo: The model.
        sentences: Strings, or lists of words; may be a generator.
        path: The file to write, which ends in `.h5`, `.npz` or `.parquet`.
        layers: Layers to store: `"mix"`, `"all"`, `"top"` or a layer number.
        dtype: Precision in the file: `"float32"` or `"float16"`.
        restart: Discard what an interrupted run has stored.
        overwrite: Replace the file if it exists.
        on_sentence: Called with the words of each sentence after it is stored.
    """
    signature = _signature(elmo, layers)
    all_words = iter(elmo.words(sentences))
    sentence_count = word_count = 0
    with open_writer(
        path, signature=signature, dtype=dtype, restart=restart, overwrite=overwrite
    ) as out:
        for words in islice(all_words, out.done):
            out.skip(words)
            if elmo.state == "carry":
                elmo.embed([words])  # already stored, but later sentences need its state
            on_sentence(words)
            sentence_count, word_count = sentence_count + 1, word_count + len(words)

        for words, vectors in elmo.items(all_words, layers):
            out.write(words, vectors)
            on_sentence(words)
            sentence_count, word_count = sentence_count + 1, word_count + len(words)
        resumed = out.done
    return EmbeddingSummary(sentence_count, word_count, resumed)


def _signature(elmo: Elmo, layers: LayerChoice) -> dict[str, Any]:
    """Return everything that determines the vectors, apart from the text."""
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
