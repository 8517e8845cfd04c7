"""Writing the arrays of a corpus: the splits in shards, each a pair of `.npy` files.

`train-00000.npy` has the words of all sentences one after another, without marks, as int32 numbers
into the list of words; `train-00000.lengths.npy` the words of each sentence, int32.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

SHARD_TOKENS = 64 << 20
"""Words of a shard, roughly: one is closed when the next sentences would not fit."""
_HEADER = 128


class ArrayFile:
    """A `.npy` file of one dimension that grows."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._file = path.open("wb")
        self._file.write(bytes(_HEADER))  # the length is known at the end
        self.length = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write some more."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self.length += len(values)

    def close(self) -> None:
        """Write the header that says how many there are."""
        about = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.length,)}
        magic = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._file.write((magic + repr(about).encode("ascii")).ljust(_HEADER - 1) + b"\n")
        self._file.close()


class SplitWriter:
    """One split, sentence after sentence."""

    def __init__(self, directory: Path, name: str, shard_tokens: int = SHARD_TOKENS) -> None:
        self._directory = directory
        self._name = name
        self._shard_tokens = shard_tokens
        self._open: tuple[ArrayFile, ArrayFile] | None = None
        self.shards: list[dict[str, int]] = []

    def add(self, ids_N: npt.NDArray[np.int32], lengths_S: npt.NDArray[np.int32]) -> None:
        """Write some sentences, all into one shard."""
        if not len(lengths_S):
            return
        if self._open and self._open[0].length + len(ids_N) > self._shard_tokens:
            self._close()
        if self._open is None:
            base = self._directory / f"{self._name}-{len(self.shards):05d}"
            self._open = (
                ArrayFile(base.with_suffix(".npy"), np.int32),
                ArrayFile(base.with_suffix(".lengths.npy"), np.int32),
            )
        self._open[0].append(ids_N)
        self._open[1].append(lengths_S)

    def _close(self) -> None:
        if self._open is not None:
            ids, lengths = self._open
            ids.close()
            lengths.close()
            self.shards.append({"tokens": ids.length, "sentences": lengths.length})
            self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
