"""One row per sentence or per word, in the order of the text: nothing is lost but precision.

Arrays of both: `location` (S, 3) int64, the file number, offset and number of each sentence, and

    vectors      (N, D) or (N, L+1, D) float32, float16 or int8
    scales       (N,) or (N, L+1) float32, of int8 vectors
    codes        (N, P), numbers of clusters, instead of vectors, with k-means

where N is the number of sentences or words. One row per sentence has `word_counts` (S,) int32 too.
One row per word has `lengths` (S,) int32, the words of each sentence; `forms`, the distinct words,
one per line in UTF-8, in the order of their first use; and `form_numbers` (N,) int32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from elmokit.elmo import Elmo, pool_vectors
from elmokit.vectors.reducers import (
    ReduceContext,
    ReducedText,
    VectorSpools,
    copy_rows,
    embed_located,
    row_shape,
)
from elmokit.vectors.shard_files import ArraySpool, ShardFile
from elmokit.vectors.shard_input import LocatedSentence

VECTOR_ARRAYS = ("vectors", "scales", "codes")


class SentenceRows:
    """One vector per sentence."""

    def reduce(
        self, elmo: Elmo, sentences: Iterable[LocatedSentence], context: ReduceContext
    ) -> ReducedText:
        """Return the arrays of a shard."""
        settings = context.reduction
        vectors = VectorSpools(context, row_shape(elmo, context.layers))
        counts = ArraySpool(context.directory, "<i4")
        locations = ArraySpool(context.directory, "<i8", (3,))
        result = ReducedText()
        for item, words, rows in embed_located(elmo, sentences, context.layers):
            layers_first = rows if rows.ndim == 2 else rows.transpose(1, 0, 2)
            pooled = pool_vectors(layers_first, settings.pooling, settings.normalize)
            vectors.append(pooled[None])
            counts.append(np.array([len(words)], "<i4"))
            locations.append(np.array([item.location], "<i8"))
            result.sentences += 1
            result.words += len(words)
        result.arrays = {**vectors.finish(), "word_counts": counts, "location": locations}
        return result

    def merge(self, files: Sequence[ShardFile], context: ReduceContext) -> ReducedText:
        """Return the arrays of all shards, one after another."""
        return _concatenate(files, context, [*VECTOR_ARRAYS, "word_counts", "location"])


class WordRows:
    """One vector per word."""

    def reduce(
        self, elmo: Elmo, sentences: Iterable[LocatedSentence], context: ReduceContext
    ) -> ReducedText:
        """Return the arrays of a shard."""
        settings = context.reduction
        vectors = VectorSpools(context, row_shape(elmo, context.layers))
        lengths = ArraySpool(context.directory, "<i4")
        locations = ArraySpool(context.directory, "<i8", (3,))
        numbers = ArraySpool(context.directory, "<i4")
        forms: dict[str, int] = {}
        result = ReducedText()
        for item, words, rows in embed_located(elmo, sentences, context.layers):
            vectors.append(pool_vectors(rows, None, settings.normalize))
            lengths.append(np.array([len(words)], "<i4"))
            locations.append(np.array([item.location], "<i8"))
            numbers.append(np.array([forms.setdefault(w, len(forms)) for w in words], "<i4"))
            result.sentences += 1
            result.words += len(words)
        result.arrays = {
            **vectors.finish(),
            "lengths": lengths,
            "location": locations,
            "form_numbers": numbers,
            "forms": join_forms(context, forms),
        }
        return result

    def merge(self, files: Sequence[ShardFile], context: ReduceContext) -> ReducedText:
        """Return the arrays of all shards, one after another, with one list of forms."""
        result = _concatenate(files, context, [*VECTOR_ARRAYS, "lengths", "location"])
        numbers = ArraySpool(context.directory, "<i4")
        forms: dict[str, int] = {}
        for file in files:
            of_shard = np.array(
                [
                    forms.setdefault(line.decode("utf-8", "surrogatepass"), len(forms))
                    for line in file.lines("forms")
                ],
                "<i4",
            )
            own = file.rows("form_numbers")
            for k in range(0, len(own), 1 << 20):
                numbers.append(of_shard[own[k : k + (1 << 20)]])
        result.arrays["form_numbers"] = numbers
        result.arrays["forms"] = join_forms(context, forms)
        return result


SENTENCES, WORDS = SentenceRows(), WordRows()


def join_forms(context: ReduceContext, forms: Iterable[str]) -> ArraySpool:
    """Return words as an array of bytes, one word per line."""
    spool = ArraySpool(context.directory, "u1")
    for form in forms:
        spool.extend(f"{form}\n".encode("utf-8", "surrogatepass"))
    return spool


def _concatenate(
    files: Sequence[ShardFile], context: ReduceContext, names: Sequence[str]
) -> ReducedText:
    result = ReducedText()
    for name in names:
        if name not in files[0].names:
            continue
        first = files[0].rows(name)
        spool = ArraySpool(context.directory, first.dtype, first.shape[1:])
        for file in files:
            copy_rows(spool, file.rows(name))
        result.arrays[name] = spool
    result.sentences = sum(file.header["sentences"] for file in files)
    result.words = sum(file.header["words"] for file in files)
    return result
