"""Mean vector and count of every word form.

Vectors are added as integers, in multiples of 2^-24, so that the sums do not depend on the order
or on the shards: a mean is within 3e-8 of the exact one, and always has the same bits. In a shard:

    forms     the words, one per line in UTF-8, in the order of their bytes
    counts    (V,) int64
    sums      (V, D) or (V, L+1, D) int64, in multiples of 2^-24

After merging, `vectors` float32, the means, are in the place of the sums. A table that grows beyond
`TABLE_BYTES` is written to the disk, and such parts are merged like shards.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.vectors.reducers import ReduceContext, ReducedText, embed_located, row_shape
from elmokit.vectors.shard_files import ArraySpool, ShardFile, write_shard_file
from elmokit.vectors.shard_input import LocatedSentence

FRACTION_BITS = 24
"""Bits after the binary point of the sums."""
TABLE_BYTES = 256 << 20
"""Size from which on a table of sums is written to the disk."""
_BUFFER_WORDS = 8192


def reduce(elmo: Elmo, sentences: Iterable[LocatedSentence], context: ReduceContext) -> ReducedText:
    """Return counts and sums of the word forms of a shard."""
    row = row_shape(elmo, context.layers)
    result = ReducedText()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=context.directory)))
        runs: list[ShardFile] = []
        table = _SumTable(row)

        def spill() -> None:
            path = folder / f"{len(runs)}.npz"
            write_shard_file(path, {"kind": "run"}, table.arrays())
            runs.append(stack.enter_context(ShardFile(path)))

        for _, words, rows in embed_located(elmo, sentences, context.layers):
            table.add(words, rows)
            result.sentences += 1
            result.words += len(words)
            if table.nbytes > TABLE_BYTES:
                spill()
                table = _SumTable(row)
        if runs:
            spill()
            result.arrays = _merge_sums(runs, context, row, means=False)
        else:
            result.arrays = dict(table.arrays())
        forms = result.arrays["counts"].shape[0]
        result.extra = {"fraction_bits": FRACTION_BITS, "forms": forms}
    return result


def merge(files: Sequence[ShardFile], context: ReduceContext) -> ReducedText:
    """Return counts and mean vectors of the word forms of all shards."""
    row = files[0].rows("sums").shape[1:]
    result = ReducedText()
    result.arrays = _merge_sums(files, context, row, means=True)
    result.sentences = sum(file.header["sentences"] for file in files)
    result.words = sum(file.header["words"] for file in files)
    result.extra = {"forms": result.arrays["counts"].shape[0]}
    return result


class _SumTable:
    """Counts and sums of word forms, in memory."""

    def __init__(self, row: tuple[int, ...]) -> None:
        self._row = row
        self._numbers: dict[str, int] = {}
        self._counts = np.zeros(0, np.int64)
        self._sums = np.zeros((0, *row), np.int64)
        self._words: list[str] = []
        self._vectors: list[FloatArray] = []
        self._largest = 0

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes

    def add(self, words: Sequence[str], rows: FloatArray) -> None:
        self._words.extend(words)
        self._vectors.append(rows)
        if len(self._words) >= _BUFFER_WORDS:
            self._flush()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        self._flush()
        coded = {form: form.encode("utf-8", "surrogatepass") for form in self._numbers}
        ordered = sorted(self._numbers, key=coded.__getitem__)
        rows = np.array([self._numbers[form] for form in ordered], np.int64)
        blob = b"".join(coded[form] + b"\n" for form in ordered)
        return {
            "forms": np.frombuffer(blob, np.uint8),
            "counts": self._counts[rows],
            "sums": self._sums[rows],
        }

    def _flush(self) -> None:
        if not self._words:
            return
        numbers = np.array(
            [self._numbers.setdefault(word, len(self._numbers)) for word in self._words], np.int64
        )
        if len(self._numbers) > len(self._counts):
            more = max(len(self._numbers) * 5 // 4, 1024) - len(self._counts)
            self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])
            self._sums = np.concatenate([self._sums, np.zeros((more, *self._row), np.int64)])
        vectors = np.concatenate(self._vectors).astype(np.float64)
        self._words, self._vectors = [], []
        fixed = np.rint(np.ldexp(vectors, FRACTION_BITS))
        largest = float(np.abs(fixed).max(initial=0))
        if not largest < 1 << 48:
            raise InputError(
                f"a vector has the value {np.ldexp(largest, -FRACTION_BITS):g}, which is too large "
                "to be added up exactly"
            )
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        self._sums[ordered[starts]] += np.add.reduceat(fixed.astype(np.int64)[order], starts)
        self._counts[ordered[starts]] += np.diff(np.append(starts, len(ordered)))
        self._largest = max(self._largest, int(largest))
        if int(self._counts.max()) * self._largest >= 1 << 63:
            raise InputError("a sum of vectors is too large; use more shards")


def _merge_sums(
    files: Sequence[ShardFile], context: ReduceContext, row: tuple[int, ...], means: bool
) -> dict[str, Any]:
    """Merge sorted tables, one form at a time."""
    forms = ArraySpool(context.directory, "u1")
    counts = ArraySpool(context.directory, "<i8")
    values = ArraySpool(context.directory, "<f4" if means else "<i8", row)
    counts_of = [file.array("counts") for file in files]
    sums_of = [file.rows("sums") for file in files]

    def read(number: int) -> Iterator[tuple[bytes, int, int]]:
        for k, form in enumerate(files[number].lines("forms")):
            yield form, number, k

    merged = heapq.merge(*(read(number) for number in range(len(files))))
    for form, entries in groupby(merged, key=itemgetter(0)):
        count = 0
        total = np.zeros(row, np.int64)
        size = 0.0
        for _, number, k in entries:
            count += int(counts_of[number][k])
            part = sums_of[number][k]
            total += part
            size += float(np.abs(part).max(initial=0))
        if size >= 1 << 62:
            raise InputError(f"the sum of the vectors of {form!r} is too large for 64 bits")
        forms.extend(form + b"\n")
        counts.append(np.array([count], "<i8"))
        value = np.ldexp(total / count, -FRACTION_BITS) if means else total
        values.append(value[None])
    return {"forms": forms, "counts": counts, "vectors" if means else "sums": values}
