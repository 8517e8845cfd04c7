"""The spool: an append-only log of sentences that survives an interruption.

Neither HDF5 nor Parquet survives a kill in the middle of a write, so the target is not written
until all sentences are in the spool beside it. A spool is

    MAGIC
    header   u64 bytes, u32 crc, JSON {"dtype", "format", "signature"}; "pooled" and "ids" if so
    record   u64 bytes of text, u64 layers (0: a plain (T, D) array), u64 T, u64 D, u32 crc,
             text (JSON in ASCII: the words as a list, or an object with "words"), the array's bytes
    …
    end      a record without text, whose T is the number of sentences: the input is complete

little-endian throughout. Whatever follows the last complete record was left by an interruption and
is cut off on opening. A spool knows nothing about the file that will be made from it.
"""

import contextlib
import hashlib
import io
import json
import os
import struct
import time
import zlib
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError, InputError
from elmokit.json_text import is_list_of_text, parse_json
from elmokit.storage import sync_directory, try_lock

VectorArray = npt.NDArray[np.floating[Any]]
"""The vectors of one sentence, (T, D) or (layers, T, D)."""

SPOOL_MAGIC = b"elmokit spool 1\n"
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
"""The precisions that a file can have."""

SYNC_BYTES = 32 << 20
"""Bytes between two syncs, which is how much a power failure can cost, …"""
SYNC_SECONDS = 5.0
"""… and seconds between them; killing the process costs only the sentence being written."""

_SIZES = struct.Struct("<QI")
_FIELDS = struct.Struct("<QQQQ")
_CRC = struct.Struct("<I")
_CHUNK = 1 << 20


class Spool:
    """An open, locked spool of `count` sentences of the same `shape` (layers, D)."""

    def __init__(self, path: Path, header: Mapping[str, Any], restart: bool = False) -> None:
        """Open or create a spool.

        Args:
            path: The file.
            header: The dtype, format and signature of the run; must equal the stored ones, unless
                the spool holds no sentences yet.
            restart: Discard the sentences of an interrupted run.
        """
        self.path = path
        self.header = dict(header)
        self.dtype = DTYPES[header["dtype"]]
        self.count = 0
        self.shape: tuple[int, int] | None = None
        self.ended = False
        """Whether all sentences of the input are stored."""
        self._start = self._end = 0  # of the records, without the end mark
        self._file = _open_locked(path)
        try:
            stored = _read_header(path, restart)
            if stored is not None and not restart:
                self._scan(stored[1], DTYPES[stored[0]["dtype"]])
            # A spool without sentences is free to use: its run failed before it did anything.
            if self.count == 0 and not self.ended:
                self._create()
            elif stored is not None and stored[0] != self.header:
                raise InputError(_mismatch(path, stored[0], self.header))
            self._synced, self._sync_time = self._end, time.monotonic()
        except BaseException:
            self._file.close()
            raise

    def append(self, text: bytes, array: VectorArray) -> None:
        """Store one sentence: its words as JSON text, its array in the spool's dtype."""
        if self.ended:  # more input than last time: remove the end mark
            self._file.truncate(self._end)
            self.ended = False
        layers = array.shape[0] if array.ndim == 3 else 0
        fields = _FIELDS.pack(len(text), layers, *array.shape[-2:])
        body = array.reshape(-1).view(np.uint8).data
        crc = zlib.crc32(body, zlib.crc32(text, zlib.crc32(fields)))
        try:
            self._write(fields + _CRC.pack(crc) + text)
            self._write(body)
            self._end += len(fields) + _CRC.size + len(text) + len(body)
            self.count += 1
        except BaseException:  # disk full, Ctrl-C: remove the half record
            self._file.truncate(self._end)
            raise
        self.shape = (layers, array.shape[-1])
        late = time.monotonic() - self._sync_time > SYNC_SECONDS
        if late or self._end - self._synced > SYNC_BYTES:
            self.sync()

    def end(self) -> None:
        """Mark the input as complete, so that a kill from here on repeats only the export."""
        if not self.ended:
            fields = _FIELDS.pack(0, 0, self.count, 0)
            self._write(fields + _CRC.pack(zlib.crc32(fields)))
            self.ended = True
        self.sync()

    def sync(self) -> None:
        """Wait until everything has reached the disk."""
        os.fsync(self._file.fileno())
        self._synced, self._sync_time = self._end, time.monotonic()

    def close(self, remove: bool = False) -> None:
        """Release the lock; with `remove`, delete the file first, while it is still locked."""
        if remove and os.name != "nt":
            self.path.unlink(missing_ok=True)
        self._file.close()
        if remove and os.name == "nt":  # Windows cannot delete an open file
            self.path.unlink(missing_ok=True)

    def texts(self) -> Generator[bytes, None, None]:
        """Yield the words of each sentence as JSON text, without reading the arrays."""
        with self.path.open("rb") as file:
            file.seek(self._start)
            for _ in range(self.count):
                size, *shape = _FIELDS.unpack(file.read(_FIELDS.size))
                file.seek(_CRC.size, os.SEEK_CUR)
                yield file.read(size)
                file.seek(_array_bytes(shape, self.dtype), os.SEEK_CUR)

    def job(self) -> str:
        """Return a hash of everything that determines the file: settings and sentences."""
        return job_hash(self.header, self.texts())

    def records(self) -> Generator[tuple[bytes, VectorArray], None, None]:
        """Yield the words of each sentence as JSON text, and its array; one at a time in memory."""
        with self.path.open("rb") as file:
            file.seek(self._start)
            for position in range(self.count):
                fields = file.read(_FIELDS.size)
                size, *shape = _FIELDS.unpack(fields)
                (crc,) = _CRC.unpack(file.read(_CRC.size))
                text = file.read(size)
                body = file.read(_array_bytes(shape, self.dtype))
                if zlib.crc32(body, zlib.crc32(text, zlib.crc32(fields))) != crc:
                    raise FormatError(
                        f"{self.path}: sentence {position} has changed on the disk since it was "
                        "written; run the command again to recompute the sentences from there on"
                    )
                array = np.frombuffer(body, self.dtype)
                try:
                    array = array.reshape(shape if shape[0] else shape[1:])
                except ValueError as error:  # nothing, with a size that is not possible
                    raise FormatError(f"{self.path}: sentence {position}: {error}") from None
                yield text, array

    def sentences(self) -> Generator[tuple[str | None, list[str]], None, None]:
        """Yield the id, if it has one, and the words of each sentence, without its array."""
        for text in self.texts():
            yield parse_text(text)

    @property
    def has_ids(self) -> bool:
        """Whether every sentence has an id."""
        return bool(self.header.get("ids"))

    @property
    def pooled(self) -> bool:
        """Whether an array is one vector, or one per layer, instead of one per word."""
        return bool(self.header.get("pooled"))

    def _create(self) -> None:
        text = json.dumps(self.header, sort_keys=True).encode("ascii")
        self._file.truncate(0)
        self._write(SPOOL_MAGIC + _SIZES.pack(len(text), zlib.crc32(text)) + text)
        self._start = self._end = len(SPOOL_MAGIC) + _SIZES.size + len(text)
        os.fsync(self._file.fileno())
        sync_directory(self.path.parent)

    def _scan(self, start: int, dtype: np.dtype[Any]) -> None:
        """Count the complete records from `start` on and cut off what follows the last."""
        self._start = self._end = complete = start
        with self.path.open("rb") as file:
            total = file.seek(0, os.SEEK_END)
            file.seek(start)
            while not self.ended:
                fields = file.read(_FIELDS.size)
                crc = file.read(_CRC.size)
                if len(crc) < _CRC.size:
                    break
                size, *shape = _FIELDS.unpack(fields)
                rest = size + _array_bytes(shape, dtype)
                if rest > total - file.tell() or _crc_of(file, rest, fields) != crc:
                    break
                complete = file.tell()
                if size == 0:
                    self.ended = True
                else:
                    self._end = complete
                    self.count += 1
                    self.shape = (shape[0], shape[2])
        if complete < total:
            self._file.truncate(complete)

    def _write(self, piece: bytes | memoryview) -> None:
        view = memoryview(piece)
        while len(view):  # one write() takes at most 2 GB, and less if the disk is nearly full
            view = view[self._file.write(view) :]


def job_hash(header: Mapping[str, Any], texts: Iterable[bytes]) -> str:
    """Return the SHA-256 of the header and the texts of a run; equal runs write equal files."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for text in texts:
        digest.update(f"\n{len(text)} ".encode() + text)
    return digest.hexdigest()


def parse_text(text: bytes) -> tuple[str | None, list[str]]:
    """Return the id, None without one, and the words of a sentence from the text of its record."""
    try:
        entry = parse_json(text)
    except ValueError as error:
        raise FormatError(f"an unfinished run holds a sentence that is damaged: {error}") from None
    if not isinstance(entry, dict):
        entry = {"words": entry}
    identifier, words = entry.get("id"), entry.get("words")
    if not is_list_of_text(words) or not isinstance(identifier, str | None):
        raise FormatError(
            f"an unfinished run holds a sentence that is damaged: {entry!s:.100}; expected words"
        )
    return identifier, words


def _array_bytes(shape: list[int], dtype: np.dtype[Any]) -> int:
    layers, length, dim = shape
    return max(layers, 1) * length * dim * dtype.itemsize


def _crc_of(file: BinaryIO, size: int, fields: bytes) -> bytes:
    crc = zlib.crc32(fields)
    while size > 0:
        chunk = file.read(min(size, _CHUNK))
        if not chunk:
            break
        crc = zlib.crc32(chunk, crc)
        size -= len(chunk)
    return _CRC.pack(crc)


def _open_locked(path: Path) -> io.FileIO:
    while True:
        file = io.FileIO(path, "a+")
        try:
            _lock(file, path)
            # The last owner may have finished and removed the file between our two calls.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: io.FileIO, path: Path) -> None:
    try:
        locked = try_lock(file.fileno())
    except OSError:  # some network file systems have no locks; writing there is better than not
        return
    if not locked:
        raise InputError(
            f"{path} is being written by another process; wait for it, or write to another file"
        )


def _read_header(path: Path, restart: bool) -> tuple[dict[str, Any], int] | None:
    """Return the stored header and where the records begin; None if the header is incomplete."""
    with path.open("rb") as file:
        magic = file.read(len(SPOOL_MAGIC))
        if not SPOOL_MAGIC.startswith(magic):
            # A file of another program, so not even `restart` may delete it.
            raise FormatError(
                f"{path} is not an unfinished run of elmokit: it begins with {magic!r}, expected "
                f"{SPOOL_MAGIC!r}; move it away, or write to another file"
            )
        sizes = file.read(_SIZES.size)
        if len(sizes) < _SIZES.size:
            return None
        size, crc = _SIZES.unpack(sizes)
        start = file.tell()
        if size > file.seek(0, os.SEEK_END) - start:
            return None
        file.seek(start)
        text = file.read(size)
    header = _parse_header(text) if zlib.crc32(text) == crc else None
    if header is not None:
        return header, start + size
    if restart:
        return None
    raise FormatError(
        f"{path} is damaged: its header does not match its checksum; start again with "
        "restart=True (--restart)"
    )


def _parse_header(text: bytes) -> dict[str, Any] | None:
    """Return a header; None if it is none, since zeros have the checksum of nothing."""
    try:
        header = parse_json(text)
    except ValueError:
        return None
    if not isinstance(header, dict) or header.get("dtype") not in [*DTYPES]:
        return None
    return header if isinstance(header.get("signature"), dict) else None


def _mismatch(path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    old, new = _flat(stored), _flat(wanted)
    differences = [
        f"{key} was {old.get(key, 'absent')}, is {new.get(key, 'absent')}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    return (
        f"{path} holds an unfinished run with other settings ({'; '.join(differences)}); "
        "continue with the same settings, or start again with restart=True (--restart)"
    )


def _flat(header: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a header by name, shortened for a message."""
    own = {f"the file's {key}": header[key] for key in header if key != "signature"}
    texts = {key: json.dumps(value) for key, value in {**own, **header["signature"]}.items()}
    return {key: text if len(text) <= 80 else _shortened(text) for key, text in texts.items()}


def _shortened(text: str) -> str:
    # The checksum distinguishes two long values with the same beginning.
    return f"{text[:60]}… (crc {zlib.crc32(text.encode('ascii')):08x})"
