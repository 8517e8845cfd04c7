"""Sentences as HDF5, in the layout of AllenNLP and bilm-tf with an ordered index beside it.

    "0", "1", …          one dataset a sentence, (L+1, T, D) or (T, D), named by its line number
    sentence_to_index    (1,) string, JSON {"words joined by spaces": "line number"}, as AllenNLP
                         writes it: the last of equal sentences wins, and it is left out where it
                         would take more than SENTENCE_INDEX_BYTES, since nobody can read half of it
    elmokit/words        (N,) strings, each the words of a sentence as a JSON list in ASCII
    elmokit/lengths      (N,) int32, the words of each sentence
    elmokit              attributes `layout` (the version) and `signature` (JSON)

HDF5 orders names as strings ("10" before "2"): read by number. The reader also takes files made by
AllenNLP's `elmo` command and by bilm-tf, which have no `elmokit` group. Nothing here knows how a
write survives an interruption; that is `spool.py`.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError
from elmokit.vectors.spool import Array, Spool

LAYOUT = 1
SENTENCE_INDEX_BYTES = 64 << 20  # of memory while writing: the text and the dict around it
_ENTRY_BYTES = 160  # what one entry of a dict[str, str] costs beside its text
_BATCH_BYTES = 1 << 20
_BROKEN = (OSError, KeyError, RuntimeError, ValueError, TypeError)  # what h5py raises on bad files


def require() -> None:
    """Nothing to check: h5py belongs to the base install."""


def write(path: Path, spool: Spool) -> None:
    """Make the HDF5 file of a complete spool."""
    import h5py

    with _create(path) as file:
        # No object stores its time, so that equal input gives equal bytes.
        group = h5py.Group(h5py.h5g.create(file.id, b"elmokit", gcpl=_timeless("GROUP_CREATE")))
        group.attrs["layout"] = LAYOUT
        group.attrs["signature"] = json.dumps(spool.header["signature"])
        words = group.create_dataset("words", (spool.count,), h5py.string_dtype())
        lengths = group.create_dataset("lengths", (spool.count,), np.int32)
        # The low-level calls halve the time of a short sentence.
        properties = _timeless("DATASET_CREATE")
        dtype = h5py.h5t.py_create(spool.dtype)
        everything = h5py.h5s.ALL

        to_index: dict[str, str] | None = {}
        index_bytes = batch_bytes = 0
        batch: list[tuple[bytes, int]] = []
        for position, (text, array) in enumerate(spool.records()):
            space = h5py.h5s.create_simple(array.shape)
            dataset = h5py.h5d.create(file.id, b"%d" % position, dtype, space, properties)
            dataset.write(everything, everything, array)
            if to_index is not None:
                to_index[" ".join(json.loads(text))] = str(position)
                index_bytes += len(text) + _ENTRY_BYTES
                if index_bytes > SENTENCE_INDEX_BYTES:
                    to_index = None
            batch.append((text, array.shape[-2]))
            batch_bytes += len(text) + _ENTRY_BYTES
            if batch_bytes > _BATCH_BYTES or position + 1 == spool.count:
                rows = slice(position + 1 - len(batch), position + 1)
                words[rows] = [text for text, _ in batch]
                lengths[rows] = [length for _, length in batch]
                batch, batch_bytes = [], 0
        if to_index is not None:
            index = file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())
            index[0] = json.dumps(to_index)


def _create(path: Path) -> Any:
    """A new file whose groups are those of HDF5 1.8 (2008), without times.

    They hold a million names in constant memory; the older ones, h5py's default, keep all names
    in one heap in memory.
    """
    import h5py

    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
    properties = _timeless("FILE_CREATE")
    return h5py.File(h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, properties, access))


def _timeless(kind: str) -> Any:
    import h5py

    properties = h5py.h5p.create(getattr(h5py.h5p, kind))
    properties.set_obj_track_times(False)
    return properties


class Reader:
    """An open HDF5 file of vectors, ours or in AllenNLP's plain layout."""

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = path
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise FormatError(f"{path} is no readable HDF5 file: {error}") from None
        self.signature: dict[str, Any] | None = None
        self._lengths: Any = None
        self._sentences: dict[int, str] = {}
        try:
            self.count = self._open_ours() if "elmokit" in self._file else self._open_plain()
        except BaseException as error:
            self._file.close()
            if isinstance(error, _BROKEN):
                raise FormatError(f"{path}: its index cannot be read: {error}") from None
            raise

    def array(self, position: int) -> Array:
        """The vectors of one sentence."""
        try:
            array: Array = self._file[str(position)][()]
        except _BROKEN as error:
            raise FormatError(
                f"{self.path}: sentence {position} of {self.count} cannot be read: {error}"
            ) from None
        if getattr(array, "ndim", 0) not in (2, 3) or array.dtype.kind != "f":
            raise FormatError(
                f"{self.path}: sentence {position} is {_describe(array)}, expected floats of "
                "shape (T, D) or (layers, T, D)"
            )
        if self._lengths is not None and array.shape[-2] != self._lengths[position]:
            raise FormatError(
                f"{self.path}: sentence {position} is {_describe(array)}, but its index promises "
                f"{self._lengths[position]} words"
            )
        return array

    def words(self, position: int) -> list[str] | None:
        """The words of one sentence; None where a plain file does not tell them."""
        if self._lengths is None:
            if position not in self._sentences:
                return None
            split = self._sentences[position].split()
            # A word with a space in it cannot be told from two: better unknown than wrong.
            return split if len(split) == self._file[str(position)].shape[-2] else None
        try:
            words: list[str] = json.loads(self._file["elmokit/words"][position])
        except _BROKEN as error:
            raise FormatError(
                f"{self.path}: the words of sentence {position} cannot be read: {error}"
            ) from None
        if len(words) != self._lengths[position]:
            raise FormatError(
                f"{self.path}: sentence {position} has {len(words)} words, but its index promises "
                f"{self._lengths[position]}"
            )
        return words

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open_ours(self) -> int:
        group = self._file["elmokit"]
        layout = int(group.attrs["layout"])
        if layout > LAYOUT:
            raise FormatError(
                f"{self.path} has layout {layout}, this version reads up to {LAYOUT}: "
                "pip install -U elmokit"
            )
        self.signature = json.loads(group.attrs["signature"])
        self._lengths = group["lengths"][:]
        count = len(self._lengths)
        found = len(self._file) - 1 - ("sentence_to_index" in self._file)
        if found != count or group["words"].shape != (count,):
            raise FormatError(
                f"{self.path} holds {found} sentences and words of {group['words'].shape}, "
                f"but its index promises {count}"
            )
        return count

    def _open_plain(self) -> int:
        count, highest = 0, -1
        for key in self._file:
            if key == "sentence_to_index":
                continue
            if not (key.isascii() and key.isdigit() and str(int(key)) == key):
                raise FormatError(
                    f"{self.path} has the key {key[:60]!r}, expected line numbers only (AllenNLP's "
                    "--use-sentence-keys files have no order: make it without)"
                )
            count, highest = count + 1, max(highest, int(key))
        if highest != count - 1:
            missing = next(i for i in range(highest) if str(i) not in self._file)
            raise FormatError(
                f"{self.path} holds {count} sentences up to number {highest}, "
                f"but not number {missing}: it is incomplete"
            )
        if "sentence_to_index" in self._file:
            mapping = json.loads(self._file["sentence_to_index"][0])
            self._sentences = {int(index): sentence for sentence, index in mapping.items()}
        return count


def _describe(array: object) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.dtype} of shape {array.shape}"
    return type(array).__name__
