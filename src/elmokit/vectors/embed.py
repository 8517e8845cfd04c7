"""Embedding text into a file of vectors in one call, as `elmo embed --out` does."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

import elmokit
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Pooling, Sentence
from elmokit.errors import InputError
from elmokit.vectors.file_formats import VectorLayout
from elmokit.vectors.writer import open_writer

RowUnit = Literal["sentences", "words"]
"""What a row of a file is."""


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
    rows: RowUnit = "sentences",
    pooling: Pooling | None = None,
    normalize: bool = False,
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
        rows: `"sentences"`: one array per sentence. `"words"`: a Parquet table with one row per
            word: sentence, position, word, start, end, text, vector.
        pooling: `"mean"` or `"max"` over the words of a sentence: a Parquet table with one row per
            sentence: sentence, text, word_count, vector. A sentence without words is all zeros.
        normalize: Scale every vector to length 1, after pooling.
        restart: Discard what an interrupted run has stored.
        overwrite: Replace the file if it exists.
        on_sentence: Called with the words of each sentence after it is stored.
    """
    layout = _choose_layout(rows, pooling)
    signature = _signature(elmo, layers, pooling, normalize)
    texts: deque[str | None] = deque()
    all_words = _remember_texts(elmo, sentences, texts)
    sentence_count = word_count = 0
    with open_writer(
        path,
        signature=signature,
        dtype=dtype,
        restart=restart,
        overwrite=overwrite,
        layout=layout,
    ) as out:
        for words in islice(all_words, out.done):
            out.skip(words, texts.popleft())
            if elmo.state == "carry":
                elmo.embed([words])  # already stored, but later sentences need its state
            on_sentence(words)
            sentence_count, word_count = sentence_count + 1, word_count + len(words)

        for words, vectors in elmo.items(all_words, layers):
            out.write(words, pool_vectors(vectors, pooling, normalize), texts.popleft())
            on_sentence(words)
            sentence_count, word_count = sentence_count + 1, word_count + len(words)
        resumed = out.done
    return EmbeddingSummary(sentence_count, word_count, resumed)


def pool_vectors(
    vectors: FloatArray, pooling: Pooling | None = None, normalize: bool = False
) -> FloatArray:
    """Return the vectors of a sentence (…, T, D), pooled to (…, D) and scaled as asked.

    Args:
        vectors: One vector per word.
        pooling: `"mean"` or `"max"` over the words; None keeps one vector per word. Without words
            the result is all zeros.
        normalize: Scale every vector to length 1; zeros stay zeros.
    """
    if pooling is not None:
        if not vectors.shape[-2]:
            return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), vectors.dtype)
        vectors = vectors.mean(axis=-2) if pooling == "mean" else vectors.max(axis=-2)
    if normalize:
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = vectors / np.maximum(length, np.float32(1e-30))
    return vectors


def _choose_layout(rows: RowUnit, pooling: Pooling | None) -> VectorLayout:
    if rows not in get_args(RowUnit):
        raise InputError(f"rows is {rows!r}; expected 'sentences' or 'words'")
    if pooling is None:
        return "words" if rows == "words" else "arrays"
    if pooling not in get_args(Pooling):
        raise InputError(f"pooling is {pooling!r}; expected 'mean' or 'max', or None")
    if rows == "words":
        raise InputError(
            f"pooling is {pooling!r} and rows is 'words', but pooling makes one row per sentence; "
            "give one of the two"
        )
    return "pooled"


def _remember_texts(
    elmo: Elmo, sentences: Iterable[Sentence], texts: deque[str | None]
) -> Iterator[Sequence[str]]:
    """Yield the words of each sentence, and append its text to `texts`; None if it has none."""

    def noted() -> Iterator[Sentence]:
        for sentence in sentences:
            texts.append(sentence if isinstance(sentence, str) else None)
            yield sentence

    elmo.words(sentences)  # raises if they are not a list of sentences
    return iter(elmo.words(noted()))


def _signature(
    elmo: Elmo, layers: LayerChoice, pooling: Pooling | None, normalize: bool
) -> dict[str, Any]:
    """Return everything that determines the vectors, apart from the text."""
    signature: dict[str, Any] = {
        "elmokit": elmokit.__version__,
        "model": elmo.bilm.fingerprint,
        "layers": layers,
        "state": elmo.state,
        "dtype": elmo.dtype,
    }
    if pooling is not None:
        signature["pooling"] = pooling
    if normalize:
        signature["normalize"] = True
    if layers == "mix":
        signature["mix"] = {"scalars": list(elmo.mix.scalars), "gamma": elmo.mix.gamma}
    if elmo.state == "settled":
        settled = hashlib.sha256(elmo.settled.hidden.tobytes() + elmo.settled.cell.tobytes())
        signature["settled"] = settled.hexdigest()
    return signature
