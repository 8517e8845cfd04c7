"""Vectors in HDF5, in the layout of AllenNLP and bilm-tf with an ordered index in addition.

    "0", "1", …          one dataset per sentence, (L+1, T, D) or (T, D), named by its line number
    sentence_to_index    (1,) string, JSON {"words joined by spaces": "line number"}, as AllenNLP
                         writes it: the last of equal sentences counts. It is left out if it would
                         take more than SENTENCE_INDEX_BYTES, since half of it would be useless
    elmokit/words        (N,) strings, each the words of a sentence as a JSON list in ASCII
    elmokit/lengths      (N,) int32, the number of words of each sentence
    elmokit              attributes `layout` (the version), `signature` (JSON) and `job` (hash)

Where sentences have ids, such as proteins, there are also

    elmokit/ids          (N,) strings, the id of each sentence
    ids/ID               a link to the dataset of that sentence, so that `file["ids/P12345"]` works;
                         not for an id with a slash in it

and no sentence_to_index. Pooled vectors are (D,) or (L+1, D), and `elmokit` has the attribute
`pooled`.

HDF5 sorts names as strings ("10" before "2"): read by number. The reader also accepts files of
AllenNLP's `elmo` command and of bilm-tf, which have no `elmokit` group. How a write survives an
interruption is the business of `spool.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError
from elmokit.formats.hdf5 import check_no_external_data
from elmokit.formats.hdf5_writing import create_group, create_hdf5, without_times
from elmokit.json_text import parse_json
from elmokit.vectors.spool import Spool, VectorArray, parse_text

NAME = "hdf5"
LAYOUT = 2
"""Version of the layout; version 1 has no ids and no pooled vectors."""
IDS = "ids"
SENTENCE_INDEX_BYTES = 64 << 20
"""Memory that `sentence_to_index` may take while it is collected: the text and the dict."""
_ENTRY_BYTES = 160  # memory of one entry of a dict[str, str] in addition to its text
_BATCH_BYTES = 1 << 20
_BEST_COMPRESSION = 1100
"""A dataset of more bytes than so many times those stored claims what it does not have."""
_DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError)
"""What h5py raises for damaged files."""


def check_installed() -> None:
    """Do nothing, since h5py is always installed."""


def write(path: Path, spool: Spool) -> None:
    """Write the sentences of a complete spool to an HDF5 file."""
    import h5py

    # Groups in the format of HDF5 1.8 (2008) hold a million names in constant memory; those of the
    # older format, which is the default of h5py, keep all names in memory.
    library = (h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
    with create_hdf5(path, library=library) as file:
        # No object stores a time, so that equal input gives equal bytes.
        group = create_group(file, "elmokit")
        group.attrs["layout"] = LAYOUT if spool.has_ids or spool.pooled else 1
        if spool.pooled:
            group.attrs["pooled"] = True
        group.attrs["signature"] = json.dumps(spool.header["signature"])
        group.attrs["job"] = spool.job()
        words = group.create_dataset("words", (spool.count,), h5py.string_dtype())
        lengths = group.create_dataset("lengths", (spool.count,), np.int32)
        ids = links = None
        if spool.has_ids:
            ids = group.create_dataset(IDS, (spool.count,), h5py.string_dtype())
            links = create_group(file, IDS).id
        # The low-level calls halve the time of a short sentence.
        properties = without_times("DATASET_CREATE")
        dtype = h5py.h5t.py_create(spool.dtype)
        everything = h5py.h5s.ALL

        to_index: dict[str, str] | None = None if spool.has_ids else {}
        index_bytes = batch_bytes = 0
        batch: list[tuple[str | None, bytes, int]] = []
        for position, (record, array) in enumerate(spool.records()):
            identifier, sentence = parse_text(record)
            text = record if identifier is None else json.dumps(sentence).encode("ascii")
            stored = array[..., 0, :] if spool.pooled else array
            name = b"%d" % position
            space = h5py.h5s.create_simple(stored.shape)
            dataset = h5py.h5d.create(file.id, name, dtype, space, properties)
            dataset.write(everything, everything, np.ascontiguousarray(stored))
            if links is not None and identifier is not None and "/" not in identifier:
                links.links.create_soft(identifier.encode("utf-8", "replace"), b"/" + name)
            if to_index is not None:
                to_index[" ".join(sentence)] = str(position)
                index_bytes += len(text) + _ENTRY_BYTES
                if index_bytes > SENTENCE_INDEX_BYTES:
                    to_index = None
            batch.append((identifier, text, len(sentence)))
            batch_bytes += len(text) + _ENTRY_BYTES
            if batch_bytes > _BATCH_BYTES or position + 1 == spool.count:
                rows = slice(position + 1 - len(batch), position + 1)
                words[rows] = [text for _, text, _ in batch]
                lengths[rows] = [length for _, _, length in batch]
                if ids is not None:
                    ids[rows] = [identifier for identifier, _, _ in batch]
                batch, batch_bytes = [], 0
        if to_index is not None:
            index = file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())
            index[0] = json.dumps(to_index)


def open_file(path: Path) -> HDF5Reader:
    """Open an HDF5 file of elmokit, AllenNLP or bilm-tf."""
    return HDF5Reader(path)


class HDF5Reader:
    """An open HDF5 file of vectors, in the layout of elmokit or AllenNLP."""

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = path
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise FormatError(f"{path} cannot be read as HDF5: {error}") from None
        self.signature: dict[str, Any] | None = None
        self.job: str | None = None
        self._lengths: Any = None
        self._pooled = False
        self._sentences: dict[int, str] = {}
        try:
            self.count = self._open_own() if "elmokit" in self._file else self._open_plain()
        except BaseException as error:
            self._file.close()
            if isinstance(error, _DAMAGE):
                raise FormatError(
                    f"{path} is damaged or not a file of vectors: its index cannot be read "
                    f"({error})"
                ) from None
            raise

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence."""
        try:
            array: VectorArray = self._dataset(str(position))[()]
        except FormatError:
            raise
        except _DAMAGE as error:
            raise FormatError(
                f"{self.path}: sentence {position} of {self.count} cannot be read: {error}"
            ) from None
        if getattr(array, "ndim", 0) not in ((1, 2) if self._pooled else (2, 3)) or (
            array.dtype.kind != "f"
        ):
            expected = "(D,) or (layers, D)" if self._pooled else "(T, D) or (layers, T, D)"
            raise FormatError(
                f"{self.path}: sentence {position} is {_describe(array)}; expected floats of "
                f"shape {expected}"
            )
        if self._pooled:
            return array
        if self._lengths is not None and array.shape[-2] != self._lengths[position]:
            raise FormatError(
                f"{self.path} is damaged: sentence {position} is {_describe(array)}, but has "
                f"{self._lengths[position]} words according to the index"
            )
        return array

    def words(self, position: int) -> list[str] | None:
        """Return the words of a sentence; None if a file of AllenNLP does not hold them."""
        if self._lengths is None:
            if position not in self._sentences:
                return None
            split = self._sentences[position].split()
            # A word with a space in it looks like two words: better unknown than wrong.
            return split if len(split) == self.array(position).shape[-2] else None
        try:
            words: list[str] = parse_json(self._dataset("elmokit/words")[position])
        except FormatError:
            raise
        except _DAMAGE as error:
            raise FormatError(
                f"{self.path}: the words of sentence {position} cannot be read: {error}"
            ) from None
        if len(words) != self._lengths[position]:
            raise FormatError(
                f"{self.path} is damaged: sentence {position} has {len(words)} words, but "
                f"{self._lengths[position]} according to the index"
            )
        return words

    def ids(self) -> list[str] | None:
        """Return the ids of all sentences; None if they have none."""
        if self._lengths is None or IDS not in self._file["elmokit"]:
            return None
        try:
            ids: list[str] = self._dataset("elmokit/ids").asstr()[:].tolist()
        except FormatError:
            raise
        except _DAMAGE as error:
            raise FormatError(f"{self.path}: its ids cannot be read: {error}") from None
        return ids

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _dataset(self, name: str) -> Any:
        """Return a dataset whose numbers are in this file: nothing else may be read."""
        import h5py

        group = self._file
        for part in name.split("/"):
            link = group.get(part, getlink=True)
            if link is not None and not isinstance(link, h5py.HardLink):
                raise FormatError(
                    f"{self.path}: {name} is a link; elmokit reads nothing outside the file. Copy "
                    "the data into the file"
                )
            group = group[part]
        if not isinstance(group, h5py.Dataset):
            raise TypeError(f"{name} is not a dataset")  # the caller says what was expected
        check_no_external_data(group, str(self.path), name)
        if group.nbytes > _BEST_COMPRESSION * (group.id.get_storage_size() + 1024):
            raise FormatError(
                f"{self.path}: {name} claims {group.nbytes:,} bytes, but "
                f"{group.id.get_storage_size():,} are stored"
            )
        return group

    def _open_own(self) -> int:
        group = self._file["elmokit"]
        layout = int(group.attrs["layout"])
        if layout > LAYOUT:
            raise FormatError(
                f"{self.path} has layout {layout}, but this version of elmokit reads up to "
                f"{LAYOUT}; update it with: pip install -U elmokit"
            )
        self.signature = parse_json(group.attrs["signature"])
        self.job = group.attrs.get("job")
        self._lengths = self._dataset("elmokit/lengths")[:]
        self._pooled = bool(group.attrs.get("pooled", False))
        count = len(self._lengths)
        stored = len(self._file) - 1 - ("sentence_to_index" in self._file) - (IDS in group)
        words = self._dataset("elmokit/words")
        if stored != count or words.shape != (count,):
            raise FormatError(
                f"{self.path} is damaged: it holds vectors of {stored} sentences and words of "
                f"{words.shape[0]}, but {count} according to the index"
            )
        return count

    def _open_plain(self) -> int:
        count, highest = 0, -1
        for key in self._file:
            if key == "sentence_to_index":
                continue
            if not (key.isascii() and key.isdigit() and str(int(key)) == key):
                raise FormatError(
                    f"{self.path} has the key {key[:60]!r}; expected line numbers only. If "
                    "AllenNLP made it with --use-sentence-keys, make it again without that option"
                )
            count, highest = count + 1, max(highest, int(key))
        if highest != count - 1:
            missing = next(i for i in range(highest) if str(i) not in self._file)
            raise FormatError(
                f"{self.path} is incomplete: it holds {count} sentences up to number {highest}, "
                f"but not number {missing}"
            )
        if "sentence_to_index" in self._file:
            mapping = parse_json(self._dataset("sentence_to_index")[0])
            self._sentences = {int(index): sentence for sentence, index in mapping.items()}
        return count


def _describe(array: object) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.dtype} of shape {array.shape}"
    return type(array).__name__
