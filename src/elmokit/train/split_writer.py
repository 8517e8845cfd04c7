"""Writing a split of a corpus in shards, each a pair of `.npy` files.

`train-00000.npy` has the word ids of all sentences one after another, without marks;
`train-00000.lengths.npy` has the number of words per sentence. Both are int32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

SHARD_TOKENS = 64 << 20
"""Words per shard, about: a shard is closed when the next sentences would not fit."""
_HEADER_BYTES = 128


class ArrayFile:
    """A one-dimensional `.npy` file that is written piece by piece."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        """Create the file."""
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._file = path.open("wb")
        self._file.write(bytes(_HEADER_BYTES))  # the length is known at the end
        self.length = 0
        """Number of values written so far."""

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write some values."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self.length += len(values)

    def close(self) -> None:
        """Write the header, which has the number of values, and close the file."""
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.length,)}
        magic = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._file.write((magic + repr(header).encode("ascii")).ljust(_HEADER_BYTES - 1) + b"\n")
        self._file.close()


class SplitWriter:
    """Writes the sentences of one split; use it in a `with` block."""

    def __init__(self, directory: Path, name: str, shard_tokens: int = SHARD_TOKENS) -> None:
        """Prepare to write a split to a directory, with about `shard_tokens` words per shard."""
        self._directory = directory
        self._name = name
        self._shard_tokens = shard_tokens
        self._open: tuple[ArrayFile, ArrayFile] | None = None
        self.shards: list[dict[str, int]] = []
        """Number of tokens and sentences of each complete shard."""

    def add(self, ids_N: npt.NDArray[np.int32], lengths_S: npt.NDArray[np.int32]) -> None:
        """Write some sentences, all to the same shard."""
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

    def __exit__(self, *_: object) -> None:
        self._close()
