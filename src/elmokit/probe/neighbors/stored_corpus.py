"""A corpus whose vectors a sharded job has stored: an index is built without the network.

Shape letters: T words of a sentence, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import InputError
from elmokit.vectors.quantization import dequantize_int8
from elmokit.vectors.shard_files import ShardFile
from elmokit.vectors.shards import ShardPlan, load_codebook, load_plan, verify_shards


class StoredCorpus:
    """The sentences of a sharded job that keeps all vectors; can be read repeatedly."""

    def __init__(self, elmo: Elmo, directory: str | Path) -> None:
        """Open a job and check that it is finished and fits the model."""
        self.plan: ShardPlan = load_plan(directory)
        self.layer: LayerChoice = self.plan.layers
        if self.plan.reduction.kind != "vectors" or self.layer in ("all", "sum"):
            raise InputError(
                f"the job {directory} keeps {self.plan.reduction.kind} of layers {self.layer!r}; "
                "expected all vectors of one layer: elmo embed --file FILE --out DIR --shards N "
                "--reduce vectors --layers top --store float16"
            )
        self.plan.check_model(elmo)
        report = verify_shards(self.plan, read_all=False)
        if not report.is_complete:
            raise InputError(
                f"{len(report.missing)} of {report.shards} shards of {directory} are missing; run: "
                f"elmo embed --out {directory} --workers 2"
            )
        coded = "codebook" in self.plan.signature
        self._codebook = load_codebook(self.plan) if coded else None

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the words of each sentence."""
        return (words for words, _ in self._read(vectors=False))

    def items(self, elmo: Elmo, skip: int) -> Iterator[tuple[list[str], FloatArray, FloatArray]]:
        """Yield words, vectors (T, D) and context-free vectors (T, D) of sentences with words.

        Args:
            elmo: The model, for the context-free vectors.
            skip: Number of sentences with words to leave out.
        """
        for number, (words, vectors_TD) in enumerate(self._read(vectors=True)):
            if number >= skip:
                yield words, vectors_TD, elmo.word_vectors(words)

    def _read(self, vectors: bool) -> Iterator[tuple[list[str], FloatArray]]:
        none = np.empty((0, 0), np.float32)
        for shard in self.plan.shards:
            with ShardFile(self.plan.path_of(shard)) as file:
                forms = [line.decode("utf-8", "surrogatepass") for line in file.lines("forms")]
                numbers = file.rows("form_numbers")
                start = 0
                for length in file.array("lengths").tolist():
                    if length:
                        rows = slice(start, start + length)
                        words = [forms[k] for k in numbers[rows].tolist()]
                        yield words, self._decode(file, rows) if vectors else none
                    start += length

    def _decode(self, file: ShardFile, rows: slice) -> FloatArray:
        if self._codebook is not None:
            return self._codebook.decode(file.rows("codes")[rows])
        vectors = file.rows("vectors")[rows]
        if vectors.dtype == np.int8:
            return dequantize_int8(vectors, file.rows("scales")[rows])
        decoded: FloatArray = vectors.astype(np.float32)
        return decoded
