"""Approximate search among many vectors: a graph by usearch, and how well it finds.

usearch is the extra `analyses`; this is its only door. The graph holds the vectors in 8 bits, which
is enough to find candidates: whoever asks compares those again with the exact vectors.

Shape letters: N vectors, Q questions, D size of a vector.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, MissingExtra

FILE, PARTIAL, FACTS = "graph.usearch", "graph.partial", "graph.json"
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 64, 128
"""At 100,000 uses of the built-in model they find 99.6 % of the ten nearest, in half a
millisecond; twice as much work when adding found 99.9 %."""
ADD_AT_ONCE, SAVE_AFTER = 8192, 125_000
CHECKED, AMONG = 100, 10
"""How many of the vectors are looked up to see how well the graph finds, and their nearest."""
SAME = 1e-6
"""Cosines that differ by less are equal."""

Rows = npt.NDArray[np.int64]
Progress = Callable[[str, int, int | None], None]


def available() -> bool:
    """Whether usearch is installed."""
    try:
        import usearch.index  # noqa: F401  only whether it is there
    except ImportError:
        return False
    return True


class Graph:
    """A finished graph, mapped into memory."""

    def __init__(self, directory: Path) -> None:
        """Open the files that `build_graph` made."""
        usearch = _usearch()
        try:
            self.facts: dict[str, Any] = json.loads((directory / FACTS).read_bytes())
            self._index = usearch.Index.restore(str(directory / FILE), view=True)
            if self._index is None:
                raise ValueError("no index")
        except (OSError, ValueError, RuntimeError) as error:
            raise FormatError(
                f"{directory / FILE} is damaged ({error}); delete the directory and index again"
            ) from None
        self._index.expansion_search = EXPANSION_SEARCH

    def __len__(self) -> int:
        """N."""
        return len(self._index)

    def candidates(self, vector_D: FloatArray, count: int) -> Rows:
        """About the `count` nearest, in no order that could be relied on."""
        found = self._index.search(_eight_bits(vector_D[None])[0], count, threads=1)
        return np.asarray(found.keys, np.uint64).astype(np.int64)


def build_graph(
    directory: Path,
    vectors_ND: npt.NDArray[np.float16],
    progress: Progress,
) -> None:
    """Make the graph of vectors of length 1; a part that was made before is continued.

    In one thread: with several, the graph and what it misses would depend on their race.
    """
    usearch = _usearch()
    partial = directory / PARTIAL
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
    for first in range(saved, len(vectors_ND), ADD_AT_ONCE):
        part = vectors_ND[first : first + ADD_AT_ONCE].astype(np.float32)
        keys = np.arange(first, first + len(part), dtype=np.uint64)
        _add(index, keys, _eight_bits(part))
        progress("linking", len(index), len(vectors_ND))
        if len(index) - saved >= SAVE_AFTER:
            _save(index, partial)
            saved = len(index)
    _save(index, partial)
    facts = {
        "connectivity": CONNECTIVITY,
        "expansion_add": EXPANSION_ADD,
        "expansion_search": EXPANSION_SEARCH,
        "storage": "int8",
        f"recall_at_{AMONG}": _recall(index, vectors_ND, progress),
    }
    (directory / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, directory / FILE)


def similarities(vectors_ND: npt.NDArray[np.float16], questions_QD: FloatArray) -> FloatArray:
    """Cosines (Q, N) of vectors of length 1, a block at a time, since they lie on the disk."""
    found_QN = np.empty((len(questions_QD), len(vectors_ND)), np.float32)
    for first in range(0, len(vectors_ND), ADD_AT_ONCE):
        part = vectors_ND[first : first + ADD_AT_ONCE].astype(np.float32)
        found_QN[:, first : first + len(part)] = questions_QD @ part.T
    return found_QN


def _recall(index: Any, vectors_ND: npt.NDArray[np.float16], progress: Progress) -> float:
    """Which part of the nearest of some vectors the graph finds; equally near ones are as good."""
    asked = np.linspace(0, len(vectors_ND) - 1, min(CHECKED, len(vectors_ND))).astype(np.int64)
    questions_QD = vectors_ND[asked].astype(np.float32)
    number = min(AMONG, len(vectors_ND))
    progress("checking", 0, None)
    parts = []
    for first in range(0, len(asked), 10):  # so that the cosines of a million stay small
        some = questions_QD[first : first + 10]
        for question_D, cosines_N in zip(some, similarities(vectors_ND, some), strict=True):
            least = np.partition(cosines_N, -number)[-number]
            found = index.search(_eight_bits(question_D[None])[0], 4 * number, threads=1)
            near = cosines_N[np.asarray(found.keys, np.int64)]
            parts.append(min(int((near >= least - SAME).sum()), number) / number)
    return round(float(np.mean(parts)), 4)


def _eight_bits(vectors_ND: FloatArray) -> npt.NDArray[np.int8]:
    """Each scaled by its own largest number, which its cosines do not notice."""
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


def _usearch() -> Any:
    try:
        import usearch.index
    except ImportError:
        raise MissingExtra(
            "searching a large index fast needs usearch: pip install 'elmokit[analyses]'"
        ) from None
    return usearch.index
