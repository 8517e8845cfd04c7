"""Vectors in files: HDF5, npz and Parquet; streamed, resumable, and read lazily.

    from elmokit.vectors import embed_to_file, load_vectors

    embed_to_file(elmo, sentences, "vectors.h5")

    with load_vectors("vectors.h5") as vectors:
        vectors[0], vectors.words(0), len(vectors), vectors.signature

Vectors of your own, sentence by sentence:

    with open_writer("vectors.h5", signature={"model": "…"}) as out:
        for position, words in enumerate(sentences):
            if position < out.done:
                out.skip(words)           # stored by an earlier run that was interrupted
            else:
                out.write(words, array)   # (T, D) or (L+1, T, D)

Sentences first go to `vectors.h5.partial` (see `spool.py`), and the file is made from it at the
end: a run that was stopped at any moment, even by a power failure, continues where it stopped and
ends with the same bytes. For a while this takes the disk space of both files. Only `embed_to_file`
knows about models. Text that is too large for one process is embedded in shards (`shards.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.vectors.capacity import CapacityAssumptions, CapacityEstimate, estimate_job
    from elmokit.vectors.embed import EmbeddingSummary, embed_fasta_to_file, embed_to_file
    from elmokit.vectors.file_formats import FORMATS
    from elmokit.vectors.reader import Vectors, load_vectors
    from elmokit.vectors.reducers import Reduction
    from elmokit.vectors.shard_files import ShardFile
    from elmokit.vectors.shard_workers import run_shards
    from elmokit.vectors.shards import (
        ShardPlan,
        ShardReport,
        ShardSummary,
        load_plan,
        merge_shards,
        plan_shards,
        run_shard,
        verify_shards,
    )
    from elmokit.vectors.writer import VectorWriter, open_writer, save_vectors

__all__ = [
    "FORMATS",
    "CapacityAssumptions",
    "CapacityEstimate",
    "EmbeddingSummary",
    "Reduction",
    "ShardFile",
    "ShardPlan",
    "ShardReport",
    "ShardSummary",
    "VectorWriter",
    "Vectors",
    "embed_fasta_to_file",
    "embed_to_file",
    "estimate_job",
    "load_plan",
    "load_vectors",
    "merge_shards",
    "open_writer",
    "plan_shards",
    "run_shard",
    "run_shards",
    "save_vectors",
    "verify_shards",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CapacityAssumptions": "elmokit.vectors.capacity",
        "CapacityEstimate": "elmokit.vectors.capacity",
        "estimate_job": "elmokit.vectors.capacity",
        "Reduction": "elmokit.vectors.reducers",
        "ShardFile": "elmokit.vectors.shard_files",
        "ShardPlan": "elmokit.vectors.shards",
        "ShardReport": "elmokit.vectors.shards",
        "ShardSummary": "elmokit.vectors.shards",
        "load_plan": "elmokit.vectors.shards",
        "merge_shards": "elmokit.vectors.shards",
        "plan_shards": "elmokit.vectors.shards",
        "run_shard": "elmokit.vectors.shards",
        "verify_shards": "elmokit.vectors.shards",
        "run_shards": "elmokit.vectors.shard_workers",
        "FORMATS": "elmokit.vectors.file_formats",
        "EmbeddingSummary": "elmokit.vectors.embed",
        "VectorWriter": "elmokit.vectors.writer",
        "Vectors": "elmokit.vectors.reader",
        "embed_fasta_to_file": "elmokit.vectors.embed",
        "embed_to_file": "elmokit.vectors.embed",
        "load_vectors": "elmokit.vectors.reader",
        "open_writer": "elmokit.vectors.writer",
        "save_vectors": "elmokit.vectors.writer",
    },
    renamed={
        "Writer": "VectorWriter",
        "load": "load_vectors",
        "save": "save_vectors",
    },
)
