"""What a sharded job keeps of its vectors: the settings of a reducer, and what reducers share.

A reducer turns the sentences of a shard into the arrays of a file, in bounded memory, and merges
such files. A merged file has the same bytes however the text was divided into shards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Pooling, Sentence
from elmokit.errors import InputError
from elmokit.formats.checked_rows import CheckedRows
from elmokit.vectors.quantization import STORED_AS, Codebook, StoredAs, quantize_int8
from elmokit.vectors.shard_files import ArraySpool, ShardFile, StoredArray
from elmokit.vectors.shard_input import LocatedSentence

ReducerName = Literal["vectors", "sentence", "forms", "uses"]
"""What is kept: all vectors, one per sentence, one per word form, or uses of some words."""
REDUCERS: tuple[ReducerName, ...] = get_args(ReducerName)
BUFFER_ROWS = 1024
"""Vectors that are encoded at once."""


@dataclass(frozen=True)
class Reduction:
    """What a sharded job keeps of the vectors.

    Args:
        kind: `"vectors"`: the vector of every word. `"sentence"`: one vector per sentence.
            `"forms"`: mean vector and count of every word form. `"uses"`: a random sample of the
            uses of some words, with their sentences.
        store: How vectors are stored, for `"vectors"` and `"sentence"`: `"float32"`, `"float16"`,
            `"int8"` (with a scale per vector) or `"kmeans"` (codes of clusters).
        pooling: `"mean"` or `"max"` over the words, for `"sentence"`.
        normalize: Scale every vector to length 1, for `"vectors"` and `"sentence"`.
        targets: Words to sample, for `"uses"`: `"play"`, or `"play=plays,played"` to count other
            forms as the same word. Case does not matter.
        max_uses: Uses of each word in the sample, at most.
        seed: Random seed of the sample.
        clusters: Clusters of each part of a vector, for `"kmeans"`.
        parts: Parts of a vector with clusters of their own, for `"kmeans"`; as many codes are
            stored per vector.
    """

    kind: ReducerName = "vectors"
    store: StoredAs = "float32"
    pooling: Pooling = "mean"
    normalize: bool = False
    targets: tuple[str, ...] = ()
    max_uses: int = 200
    seed: int = 0
    clusters: int = 256
    parts: int = 16

    def __post_init__(self) -> None:
        if self.kind not in REDUCERS:
            raise InputError(f"reduce is {self.kind!r}; expected one of {', '.join(REDUCERS)}")
        if self.store not in STORED_AS:
            raise InputError(f"store is {self.store!r}; expected one of {', '.join(STORED_AS)}")
        if self.pooling not in get_args(Pooling):
            raise InputError(f"pooling is {self.pooling!r}; expected 'mean' or 'max'")
        if self.kind in ("forms", "uses") and (self.store != "float32" or self.normalize):
            raise InputError(
                f"reduce {self.kind!r} stores float32 vectors as they are; leave out --store and "
                "--normalize"
            )
        if self.kind == "uses" and not self.targets:
            raise InputError("reduce 'uses' needs the words to sample: targets=[…] (--target WORD)")
        if self.kind != "uses" and self.targets:
            raise InputError(f"targets are for reduce 'uses'; found reduce {self.kind!r}")
        if self.max_uses < 1:
            raise InputError(f"max_uses (--uses) is {self.max_uses}; expected 1 or more")

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that matter for this reducer, as JSON holds them."""
        settings: dict[str, Any] = {"kind": self.kind}
        if self.kind in ("vectors", "sentence"):
            settings["store"] = self.store
            settings["normalize"] = self.normalize
            if self.store == "kmeans":
                settings |= {"clusters": self.clusters, "parts": self.parts}
        if self.kind == "sentence":
            settings["pooling"] = self.pooling
        if self.kind == "uses":
            settings |= {"targets": list(self.targets), "max_uses": self.max_uses}
            settings["seed"] = self.seed
        return settings

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Reduction:
        """Return the reduction that `as_dict` describes."""
        values = dict(settings)
        if "targets" in values:
            values["targets"] = tuple(values["targets"])
        return cls(**values)


@dataclass
class ReducedText:
    """What a reducer makes of a text: the arrays of a file."""

    sentences: int = 0
    """Number of sentences that were read, those without words included."""
    words: int = 0
    """Number of words that were read."""
    arrays: dict[str, StoredArray] = field(default_factory=dict)
    """Arrays by name."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What else belongs into the header of the file."""


class ReduceContext(NamedTuple):
    """What a reducer has besides the text."""

    reduction: Reduction
    """What to keep."""
    layers: LayerChoice
    """Which layers."""
    directory: Path
    """Directory for temporary files."""
    codebook: Codebook | None = None
    """Clusters, for k-means codes."""


class Reducer(Protocol):
    """A reducer, implemented by a module."""

    def reduce(
        self, elmo: Elmo, sentences: Iterable[LocatedSentence], context: ReduceContext
    ) -> ReducedText:
        """Return the arrays of a shard."""

    def merge(self, files: Sequence[ShardFile], context: ReduceContext) -> ReducedText:
        """Return the arrays of all shards together; the files are in the order of the text."""


def get_reducer(kind: ReducerName) -> Reducer:
    """Return the reducer of a kind."""
    from elmokit.vectors import reduce_forms, reduce_rows, reduce_uses

    modules: dict[ReducerName, Reducer] = {
        "vectors": reduce_rows.WORDS,
        "sentence": reduce_rows.SENTENCES,
        "forms": reduce_forms,
        "uses": reduce_uses,
    }
    return modules[kind]


def embed_located(
    elmo: Elmo, sentences: Iterable[LocatedSentence], layers: LayerChoice
) -> Iterator[tuple[LocatedSentence, Sequence[str], FloatArray]]:
    """Yield each sentence with its words and vectors (T, D), or (T, L+1, D) for all layers."""
    waiting: deque[LocatedSentence] = deque()

    def read() -> Iterator[Sentence]:
        for item in sentences:
            if item.sentence is not None:
                waiting.append(item._replace(sentence=None))
                yield item.sentence

    for words, vectors in elmo.items(read(), layers):
        yield waiting.popleft(), words, words_first(vectors)


def words_first(vectors: FloatArray) -> FloatArray:
    """Return (T, D) as it is, and (L+1, T, D) as (T, L+1, D)."""
    return vectors if vectors.ndim == 2 else vectors.transpose(1, 0, 2)


def row_shape(elmo: Elmo, layers: LayerChoice) -> tuple[int, ...]:
    """Return the shape of the vector of a word: (D,), or (L+1, D) for all layers."""
    return (elmo.layers, elmo.dim) if layers == "all" else (elmo.dim,)


class VectorSpools:
    """Vectors that are written in the precision of a reduction."""

    def __init__(self, context: ReduceContext, row: tuple[int, ...]) -> None:
        """Begin without vectors.

        Args:
            context: How they are stored, and where temporary files are.
            row: Shape of a vector: (D,) or (L+1, D).
        """
        self._store = context.reduction.store
        self._codebook = context.codebook
        self._buffer: list[FloatArray] = []
        self._buffered = 0
        self._arrays: dict[str, ArraySpool] = {}
        directory = context.directory
        if self._store == "kmeans":
            if self._codebook is None or self._codebook.dim != int(np.prod(row)):
                raise InputError("the codebook does not fit the vectors; begin the job again")
            codes = ArraySpool(directory, self._codebook.dtype, (self._codebook.parts,))
            self._arrays["codes"] = codes
        elif self._store == "int8":
            self._arrays["vectors"] = ArraySpool(directory, "i1", row)
            self._arrays["scales"] = ArraySpool(directory, "<f4", row[:-1])
        else:
            dtype = "<f2" if self._store == "float16" else "<f4"
            self._arrays["vectors"] = ArraySpool(directory, dtype, row)

    def append(self, rows: FloatArray) -> None:
        """Add some vectors."""
        self._buffer.append(rows)
        self._buffered += len(rows)
        if self._buffered >= BUFFER_ROWS:
            self._flush()

    def finish(self) -> dict[str, StoredArray]:
        """Return the arrays by name."""
        self._flush()
        return dict(self._arrays)

    def _flush(self) -> None:
        if not self._buffer:
            return
        rows = np.concatenate(self._buffer)
        self._buffer, self._buffered = [], 0
        if self._store == "kmeans" and self._codebook is not None:
            self._arrays["codes"].append(
                self._codebook.encode(rows.reshape(len(rows), self._codebook.dim))
            )
        elif self._store == "int8":
            codes, scales = quantize_int8(rows)
            self._arrays["vectors"].append(codes)
            self._arrays["scales"].append(scales)
        else:
            with np.errstate(over="raise"):
                try:
                    self._arrays["vectors"].append(rows.astype(self._arrays["vectors"].dtype))
                except FloatingPointError:
                    raise InputError(
                        "a vector has a value that float16 cannot represent; store float32 or int8"
                    ) from None


def copy_rows(spool: ArraySpool, array: CheckedRows, rows: int = 1 << 14) -> None:
    """Append an array in a file to a spool, some rows at a time."""
    for k in range(0, len(array), rows):
        spool.append(array[k : k + rows])
