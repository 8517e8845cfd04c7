"""Embeddings to files and back: HDF5, npz and Parquet; streamed, resumable, read lazily.

    with open_writer("vectors.h5", signature={"model": "…"}) as out:
        for position, words in enumerate(sentences):
            if position < out.done:
                out.skip(words)           # stored by an earlier run that was interrupted
            else:
                out.write(words, array)   # (T, D) or (L+1, T, D)

    with load("vectors.h5") as vectors:
        vectors[0], vectors.words(0), len(vectors), vectors.signature

Sentences go to `vectors.h5.partial` first (`spool.py`), and the file is made of it when all are in:
a run that was stopped at any moment, by a power failure too, continues where it stopped and ends
in the same bytes. That takes the room of both files for a while. Nothing here knows a model.
"""

from elmokit.vectors.reader import Vectors, load
from elmokit.vectors.suffix import FORMATS
from elmokit.vectors.writer import Writer, open_writer, save

__all__ = ["FORMATS", "Vectors", "Writer", "load", "open_writer", "save"]
