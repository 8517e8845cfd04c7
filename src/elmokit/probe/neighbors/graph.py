"""Approximate nearest-neighbor search among many vectors, with a graph built by usearch.

usearch comes with the extra `analyses`, and only this file imports it. The graph holds the vectors
in 8 bits, which is enough to find candidates; the caller compares those again with exact vectors.

Shape letters: N vectors, Q queries, D size of a vector.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, MissingExtra
from elmokit.extras import require
from elmokit.formats.checked_rows import CheckedRows
from elmokit.json_text import check_seal, parse_json, seal
from elmokit.progress import StageCallback

GRAPH_FILE, PARTIAL_FILE, INFO_FILE = "graph.usearch", "graph.partial", "graph.json"
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 64, 128
"""Settings of usearch. At 100,000 uses of the built-in model the graph finds 99.6 % of the ten
nearest in half a millisecond; twice the expansion when adding found 99.9 %."""
BLOCK_SIZE = 8192
"""Vectors that are added, or compared, at once."""
SAVE_INTERVAL = 125_000
"""Vectors that are added between two saves of an unfinished graph."""
RECALL_QUERIES, RECALL_AT = 100, 10
"""Vectors that are looked up to measure the recall, and how many nearest of each."""
CRC = "crc32"
_OLD_KEYS = {
    *("connectivity", "expansion_add", "expansion_search", "storage", f"recall_at_{RECALL_AT}")
}
"""Keys of graph.json in version 0.1, which had no checksums."""
TOLERANCE = 1e-6
"""Cosines that differ by less count as equal."""

BUILDING, CHECKING = "building the search graph", "checking the search graph"
"""Stages that callbacks receive."""


def is_available() -> bool:
    """Return whether usearch is installed."""
    try:
        _import_usearch()
    except MissingExtra:
        return False
    return True


class Graph:
    """A finished graph, in memory: usearch would map its file, and trusts what is in it."""

    def __init__(self, directory: Path) -> None:
        """Open the files that `build_graph` wrote into a directory."""
        usearch = _import_usearch()
        try:
            self.info: dict[str, Any] = parse_json((directory / INFO_FILE).read_bytes())
            self._data = (directory / GRAPH_FILE).read_bytes()  # the index refers to it
            if set(self.info) != _OLD_KEYS:
                check_seal(self.info)
                if zlib.crc32(self._data) != self.info[CRC]:
                    raise ValueError("its checksum differs")
            self._index = usearch.Index.restore(self._data, view=True)
            if self._index is None:
                raise ValueError("no index")
        except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
            raise FormatError(
                f"{directory / GRAPH_FILE} is damaged ({error}); delete the directory and index "
                "the corpus again"
            ) from None
        self._index.expansion_search = EXPANSION_SEARCH

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._index)

    def find_candidates(self, vector_D: FloatArray, count: int) -> npt.NDArray[np.int64]:
        """Return the rows of about the `count` nearest vectors, in no particular order."""
        matches = self._index.search(_to_int8(vector_D[None])[0], count, threads=1)
        return np.asarray(matches.keys, np.uint64).astype(np.int64)


def build_graph(
    directory: Path, vectors_ND: npt.NDArray[np.float16] | CheckedRows, callback: StageCallback
) -> None:
    """Build the graph of vectors of length 1; an unfinished graph in the directory is continued.

    It runs in one thread: with several, the graph and what it misses would depend on their timing.
    """
    usearch = _import_usearch()
    partial = directory / PARTIAL_FILE
    index = usearch.Index.restore(str(partial)) if partial.exists() else None
    if index is None or len(index) > len(vectors_ND) or index.ndim != vectors_ND.shape[1]:
        index = usearch.Index(
            ndim=vectors_ND.shape[1],
            metric="cos",
            dtype="i8",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )
    index.expansion_add, index.expansion_search = EXPANSION_ADD, EXPANSION_SEARCH
    saved = len(index)
    for first in range(saved, len(vectors_ND), BLOCK_SIZE):
        block = vectors_ND[first : first + BLOCK_SIZE].astype(np.float32)
        keys = np.arange(first, first + len(block), dtype=np.uint64)
        _add(index, keys, _to_int8(block))
        callback(BUILDING, len(index), len(vectors_ND))
        if len(index) - saved >= SAVE_INTERVAL:
            _save(index, partial)
            saved = len(index)
    _save(index, partial)
    info = {
        "connectivity": CONNECTIVITY,
        "expansion_add": EXPANSION_ADD,
        "expansion_search": EXPANSION_SEARCH,
        "storage": "int8",
        f"recall_at_{RECALL_AT}": _measure_recall(index, vectors_ND, callback),
        CRC: zlib.crc32(partial.read_bytes()),
    }
    (directory / INFO_FILE).write_text(json.dumps(seal(info), indent=1) + "\n", encoding="utf-8")
    os.replace(partial, directory / GRAPH_FILE)


def cosine_similarities(
    vectors_ND: npt.NDArray[np.float16] | CheckedRows, queries_QD: FloatArray
) -> FloatArray:
    """Return the cosines (Q, N) of vectors of length 1, block by block to save memory."""
    cosines_QN = np.empty((len(queries_QD), len(vectors_ND)), np.float32)
    for first in range(0, len(vectors_ND), BLOCK_SIZE):
        block = vectors_ND[first : first + BLOCK_SIZE].astype(np.float32)
        cosines_QN[:, first : first + len(block)] = queries_QD @ block.T
    return cosines_QN


def _measure_recall(
    index: Any, vectors_ND: npt.NDArray[np.float16] | CheckedRows, callback: StageCallback
) -> float:
    """Return the share of the nearest vectors that the graph finds; ties are as good."""
    count = min(RECALL_QUERIES, len(vectors_ND))
    rows = np.linspace(0, len(vectors_ND) - 1, count).astype(np.int64)
    queries_QD = vectors_ND[rows].astype(np.float32)
    wanted = min(RECALL_AT, len(vectors_ND))
    callback(CHECKING, 0, None)
    shares = []
    for first in range(0, count, 10):  # few at once, so that the cosines of a million stay small
        some_QD = queries_QD[first : first + 10]
        for query_D, cosines_N in zip(
            some_QD, cosine_similarities(vectors_ND, some_QD), strict=True
        ):
            lowest = np.partition(cosines_N, -wanted)[-wanted]
            matches = index.search(_to_int8(query_D[None])[0], 4 * wanted, threads=1)
            near = cosines_N[np.asarray(matches.keys, np.int64)]
            shares.append(min(int((near >= lowest - TOLERANCE).sum()), wanted) / wanted)
    return round(float(np.mean(shares)), 4)


def _to_int8(vectors_ND: FloatArray) -> npt.NDArray[np.int8]:
    """Scale each vector by its own largest number, which does not change its cosines."""
    largest_N1 = np.abs(vectors_ND).max(axis=1, keepdims=True)
    bytes_ND: npt.NDArray[np.int8] = np.rint(
        vectors_ND * (127 / np.maximum(largest_N1, 1e-12))
    ).astype(np.int8)
    return bytes_ND


def _add(index: Any, keys: npt.NDArray[np.uint64], vectors: npt.NDArray[np.int8]) -> None:
    try:
        index.add(keys, vectors, threads=1)
    except RuntimeError as error:
        if "terminated" in str(error):  # what usearch makes of Ctrl-C
            raise KeyboardInterrupt from None
        raise


def _save(index: Any, path: Path) -> None:
    stage = path.with_name(f".{path.name}")
    try:
        index.save(str(stage))
        os.replace(stage, path)
    finally:
        stage.unlink(missing_ok=True)


def _import_usearch() -> Any:
    require("usearch", "Fast searches of a large index")
    import usearch.index

    return usearch.index
