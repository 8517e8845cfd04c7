"""Vectors in HDF5, in the layout of AllenNLP and bilm-tf with an ordered index in addition.

    "0", "1", …          one dataset per sentence, (L+1, T, D) or (T, D), named by its line number
    sentence_to_index    (1,) string, JSON {"words joined by spaces": "line number"}, as AllenNLP
                         writes it: the last of equal sentences counts. It is left out if it would
                         take more than SENTENCE_INDEX_BYTES, since half of it would be useless
    elmokit/words        (N,) strings, each the words of a sentence as a JSON list in ASCII
    elmokit/lengths      (N,) int32, the number of words of each sentence
    elmokit/checksums    (N, 2) uint32, the CRC-32 of the vectors and of the words of each sentence
    elmokit              attributes `layout` (the version), `signature` (JSON), `job` (hash) and
                         `checksum` (SHA-256 of all that is in the group, except for the words)

Where sentences have ids, such as proteins, there are also

    elmokit/ids          (N,) strings, the id of each sentence; attribute `checksum` (SHA-256)
    ids/ID               a link to the dataset of that sentence, so that `file["ids/P12345"]` works;
                         not for an id with a slash in it

and no sentence_to_index. Pooled vectors are (D,) or (L+1, D), and `elmokit` has the attribute
`pooled`.

HDF5 sorts names as strings ("10" before "2"): read by number. The reader also accepts files of
AllenNLP's `elmo` command and of bilm-tf, which have no `elmokit` group, and files of earlier
versions, which have no checksums. How a write survives an interruption is the business of
`spool.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError
from elmokit.formats.hdf5 import HDF5Dataset, HDF5Group, open_hdf5
from elmokit.formats.hdf5_writing import create_group, create_hdf5, without_times
from elmokit.json_text import is_list_of_text, parse_json
from elmokit.vectors.spool import Spool, VectorArray, parse_text

NAME = "hdf5"
LAYOUT = 2
"""Version of the layout; version 1 has no ids and no pooled vectors."""
IDS = "ids"
SENTENCE_INDEX_BYTES = 64 << 20
"""Memory that `sentence_to_index` may take while it is collected: the text and the dict."""
_ENTRY_BYTES = 160  # memory of one entry of a dict[str, str] in addition to its text
_BATCH_BYTES = 1 << 20
_DAMAGE = (OSError, LookupError, ValueError, TypeError, AttributeError, OverflowError)
"""What a file raises whose index holds something else than the words and numbers expected."""


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
        attributes: dict[str, Any] = {
            "layout": LAYOUT if spool.has_ids or spool.pooled else 1,
            "signature": json.dumps(spool.header["signature"]),
            "job": spool.job(),
            **({"pooled": True} if spool.pooled else {}),
        }
        for key, value in attributes.items():
            _write_attribute(group, key, value)
        words = group.create_dataset("words", (spool.count,), h5py.string_dtype())
        lengths = group.create_dataset("lengths", (spool.count,), np.int32)
        checksums = group.create_dataset("checksums", (spool.count, 2), np.uint32)
        all_lengths, all_checksums, all_ids = (hashlib.sha256() for _ in range(3))
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
        batch: list[tuple[str | None, bytes, int, tuple[int, int]]] = []
        for position, (record, array) in enumerate(spool.records()):
            identifier, sentence = parse_text(record)
            text = record if identifier is None else json.dumps(sentence).encode("ascii")
            stored = array[..., 0, :] if spool.pooled else array
            stored = np.ascontiguousarray(stored)
            name = b"%d" % position
            space = h5py.h5s.create_simple(stored.shape)
            dataset = h5py.h5d.create(file.id, name, dtype, space, properties)
            dataset.write(everything, everything, stored)
            if links is not None and identifier is not None and "/" not in identifier:
                links.links.create_soft(identifier.encode("utf-8", "replace"), b"/" + name)
            if to_index is not None:
                to_index[" ".join(sentence)] = str(position)
                index_bytes += len(text) + _ENTRY_BYTES
                if index_bytes > SENTENCE_INDEX_BYTES:
                    to_index = None
            sums = (_array_checksum(position, stored), _text_checksum(position, text))
            batch.append((identifier, text, len(sentence), sums))
            batch_bytes += len(text) + _ENTRY_BYTES
            if batch_bytes > _BATCH_BYTES or position + 1 == spool.count:
                rows = slice(position + 1 - len(batch), position + 1)
                words[rows] = [text for _, text, _, _ in batch]
                lengths_B = np.array([length for _, _, length, _ in batch], np.int32)
                checksums_B2 = np.array([both for _, _, _, both in batch], np.uint32)
                lengths[rows], checksums[rows] = lengths_B, checksums_B2
                all_lengths.update(lengths_B.tobytes())
                all_checksums.update(checksums_B2.tobytes())
                if ids is not None:
                    ids[rows] = [identifier for identifier, _, _, _ in batch]
                    _hash_ids(all_ids, (identifier or "" for identifier, _, _, _ in batch))
                batch, batch_bytes = [], 0
        if to_index is not None:
            index = file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())
            index[0] = json.dumps(to_index)
        if ids is not None:
            _write_attribute(ids, "checksum", all_ids.hexdigest())
        parts = [all_lengths.hexdigest(), all_checksums.hexdigest()]
        _write_attribute(group, "checksum", _group_checksum(attributes, parts))


def _write_attribute(target: Any, name: str, value: str | int) -> None:
    """Write an attribute with its object, where HDF5 has checksums, unlike its heap of strings."""
    target.attrs[name] = np.bytes_(value.encode("ascii")) if isinstance(value, str) else value


def _array_checksum(position: int, array: VectorArray) -> int:
    head = f"{position} {array.dtype.str} {array.shape}".encode()
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, zlib.crc32(head))


def _text_checksum(position: int, text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(b"%d " % position))


def _hash_ids(digest: Any, ids: Iterable[str]) -> None:
    for identifier in ids:
        encoded = identifier.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(encoded) + encoded)


def _group_checksum(attributes: dict[str, Any], parts: list[str]) -> str:
    text = json.dumps([sorted(attributes.items()), parts])
    return hashlib.sha256(text.encode()).hexdigest()


def open_file(path: Path) -> HDF5Reader:
    """Open an HDF5 file of elmokit, AllenNLP or bilm-tf."""
    return HDF5Reader(path)


class HDF5Reader:
    """An open HDF5 file of vectors, in the layout of elmokit or AllenNLP."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw = io.FileIO(path)
        self.signature: dict[str, Any] | None = None
        self.job: str | None = None
        self._lengths: Any = None
        self._checksums: npt.NDArray[np.uint32] | None = None
        self._pooled = self._has_ids = False
        self._sentences: dict[int, str] = {}
        try:
            self._file = open_hdf5(self._raw, str(path))
            group = self._file.find("elmokit")
            self.count = self._open_plain() if group is None else self._open_own(group)
        except BaseException as error:
            self.close()
            if isinstance(error, _DAMAGE):
                raise FormatError(
                    f"{path} is damaged or not a file of vectors: its index cannot be read "
                    f"({error})"
                ) from None
            raise

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence."""
        try:
            dataset = self._file.find(str(position))
            if not isinstance(dataset, HDF5Dataset):
                raise OSError("it is not there")
            array: VectorArray = dataset.read()
        except OSError as error:
            raise FormatError(
                f"{self.path}: sentence {position} of {self.count} cannot be read: {error}"
            ) from None
        if array.ndim not in ((1, 2) if self._pooled else (2, 3)) or (
            array.dtype.kind != "f" or array.dtype.itemsize > 8
        ):
            expected = "(D,) or (layers, D)" if self._pooled else "(T, D) or (layers, T, D)"
            raise FormatError(
                f"{self.path}: sentence {position} is {_describe(array)}; expected floats of "
                f"shape {expected}"
            )
        lengths = None if self._pooled else self._lengths
        if lengths is not None and array.shape[-2] != lengths[position]:
            raise FormatError(
                f"{self.path} is damaged: sentence {position} is {_describe(array)}, but has "
                f"{lengths[position]} words according to the index"
            )
        self._check(position, 0, lambda: _array_checksum(position, array))
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
            text: bytes = self._words.read(slice(position, position + 1)).item()
            words: list[str] = parse_json(text)
        except _DAMAGE as error:
            raise FormatError(
                f"{self.path}: the words of sentence {position} cannot be read: {error}"
            ) from None
        if not is_list_of_text(words) or len(words) != self._lengths[position]:
            raise FormatError(
                f"{self.path} is damaged: sentence {position} has the words {words!s:.80}; "
                f"expected {self._lengths[position]} words"
            )
        self._check(position, 1, lambda: _text_checksum(position, text))
        return words

    def ids(self) -> list[str] | None:
        """Return the ids of all sentences; None if they have none."""
        if not self._has_ids:
            return None
        try:
            dataset = self._file.open("elmokit/ids")
            if dataset.shape != (self.count,):
                raise FormatError(
                    f"{self.path} is damaged: its ids have the shape {dataset.shape}; expected "
                    f"{self.count} ids"
                )
            ids: list[str] = [text.decode() for text in dataset.read().tolist()]
            stored = _as_text(dataset.attribute("checksum"))
            if stored is not None:
                digest = hashlib.sha256()
                _hash_ids(digest, ids)
                if digest.hexdigest() != stored:
                    raise FormatError(f"{self.path} is damaged: the checksum of its ids differs")
        except _DAMAGE as error:
            raise FormatError(f"{self.path}: its ids cannot be read: {error}") from None
        return ids

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def _check(self, position: int, column: int, checksum: Callable[[], int]) -> None:
        """Raise `FormatError` unless a sentence has the checksum of its file, if that has any."""
        if self._checksums is not None and self._checksums[position, column] != checksum():
            raise FormatError(
                f"{self.path} is damaged: the checksum of the {('vectors', 'words')[column]} of "
                f"sentence {position} differs; make the file again"
            )

    def _open_own(self, group: HDF5Group | HDF5Dataset) -> int:
        attributes = {
            name: _as_text(group.attribute(name))
            for name in ("layout", "signature", "job", "pooled", "checksum")
        }
        layout = int(attributes["layout"])
        if layout > LAYOUT:
            raise FormatError(
                f"{self.path} has layout {layout}, but this version of elmokit reads up to "
                f"{LAYOUT}; update it with: pip install -U elmokit"
            )
        self.signature, self.job = parse_json(attributes["signature"]), attributes["job"]
        self._lengths = self._file.open("elmokit/lengths").read()
        if not isinstance(self.signature, dict) or not isinstance(self.job, str):
            raise FormatError(f"{self.path} is damaged: it does not say how it was made")
        if self._lengths.ndim != 1 or self._lengths.dtype.kind not in "iu":
            raise FormatError(
                f"{self.path} is damaged: its index is {_describe(self._lengths)}; expected "
                "integers"
            )
        self._pooled = bool(attributes["pooled"])
        if attributes["checksum"] is not None:
            self._open_checksums(attributes)
        count = len(self._lengths)
        self._has_ids = self._file.find("elmokit/ids") is not None
        stored = len(self._file) - 1 - ("sentence_to_index" in self._file) - self._has_ids
        self._words = self._file.open("elmokit/words")
        if stored != count or self._words.shape != (count,):
            raise FormatError(
                f"{self.path} is damaged: it holds vectors of {stored} sentences and words of "
                f"the shape {self._words.shape}, but {count} according to the index"
            )
        return count

    def _open_checksums(self, attributes: dict[str, Any]) -> None:
        """Read the checksums of the sentences, and compare the checksum of everything else."""
        self._checksums = checksums_N2 = self._file.open("elmokit/checksums").read()
        if self._checksums.shape != (len(self._lengths), 2):
            raise FormatError(f"{self.path} is damaged: it has checksums of other sentences")
        parts = [
            hashlib.sha256(array.tobytes()).hexdigest() for array in (self._lengths, checksums_N2)
        ]
        covered = {"layout": int(attributes["layout"]), "signature": attributes["signature"]}
        covered["job"] = attributes["job"]
        if self._pooled:
            covered["pooled"] = True
        if _group_checksum(covered, parts) != attributes["checksum"]:
            raise FormatError(
                f"{self.path} is damaged: the checksum of its index differs; make the file again"
            )

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
            mapping = parse_json(self._file.open("sentence_to_index").read(slice(0, 1)).item())
            self._sentences = {int(index): sentence for sentence, index in mapping.items()}
        return count


def _describe(array: VectorArray) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _as_text(value: Any) -> Any:
    """Return an attribute, as text if it is bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else value
