"""Chunks of text: to a file and back, and in parallel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import ElmoError
from elmokit.text.files import TextBlock
from elmokit.train.chunks import Chunk, read_chunk, read_chunks


def test_chunks_come_back_from_their_file(tmp_path: Path) -> None:
    chunk = read_chunk([TextBlock("x", 1, "the naïve the\n\nof日本".encode())], "tokenized")
    chunk.save(tmp_path / "chunk")
    other = Chunk.load(tmp_path / "chunk")
    assert (other.words, other.cut, other.lines) == (["the", "naïve", "of日本"], 0, 2)
    assert (other.ids_N.tolist(), other.lengths_S.tolist()) == ([0, 1, 0, 2], [3, 1])
    assert other.counts(np.array([True, False])).tolist() == [2, 1, 0]
    assert other.select(np.array([False, True])).ids_N.tolist() == [2]
    read_chunk([], "running").save(tmp_path / "chunk")
    assert Chunk.load(tmp_path / "chunk").words == []


def test_a_worker_that_dies(tmp_path: Path) -> None:
    # A job that a worker cannot even unpack kills nothing; one whose unpacking exits does.
    with pytest.raises(ElmoError, match=r"worker process died with exit code 9.*--processes 1"):
        list(read_chunks([(_Deadly(tmp_path), [])], "running", 2))


class _Deadly:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os._exit, (9,)


def test_jobs_are_not_taken_far_ahead(tmp_path: Path) -> None:
    taken = 0

    def jobs():
        nonlocal taken
        for i in range(50):
            taken = i
            yield tmp_path / str(i), [TextBlock("x", 1, b"a b c\n")]

    paths = read_chunks(jobs(), "tokenized", 2)
    assert next(paths) == tmp_path / "0"
    assert taken < 8
    paths.close()
    assert taken < 8
