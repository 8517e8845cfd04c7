"""Files of shards: arrays and a header in an .npz file, which `np.load(path)` opens without pickle.

    header       JSON as bytes, json.loads(bytes(z["header"])): what the file is, how many sentences
                 and words it is from, and the signature of what determined it
    NAME         one array per name; the names are those of the reducer

Equal input gives equal bytes, on any machine and after any number of interruptions: there are no
times, names of machines or paths in a file. It is written under a temporary name, synced and
renamed. Its rows can be read one by one, so that a file may be larger than the memory. Nothing is
mapped: reading a mapped file that somebody else has truncated kills the process.
"""

from __future__ import annotations

import json
import math
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError, InputError
from elmokit.formats.checked_rows import CheckedRows
from elmokit.json_text import parse_json
from elmokit.storage import atomic_write, check_regular
from elmokit.vectors.npz import NpyArchive

SHARD_FORMAT, SHARD_VERSION = "elmokit shard", 1
HEADER = "header"
_CHUNK = 1 << 20


class ArraySpool:
    """An array that grows on the disk, row by row, so that it takes no memory."""

    def __init__(self, directory: Path, dtype: npt.DTypeLike, row: tuple[int, ...] = ()) -> None:
        """Begin an empty array.

        Args:
            directory: Where its temporary file is; the file has no name and cannot be left behind.
            dtype: Type of its numbers.
            row: Shape of a row; `()` for a one-dimensional array.
        """
        self.dtype = np.dtype(dtype)
        self.row = row
        self._rows = 0
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array so far."""
        return (self._rows, *self.row)

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add some rows."""
        data = np.ascontiguousarray(rows, self.dtype)
        if data.shape[1:] != self.row:
            raise InputError(f"rows of shape {data.shape[1:]} do not fit those of shape {self.row}")
        if data.size:
            self._file.write(data.reshape(-1).view(np.uint8).data)
        self._rows += len(data)

    def extend(self, text: bytes) -> None:
        """Add bytes to an array of bytes."""
        self._file.write(text)
        self._rows += len(text)

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the array."""
        self._file.flush()
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk

    def close(self) -> None:
        """Remove the temporary file."""
        self._file.close()


StoredArray = npt.NDArray[Any] | ArraySpool
"""An array to write: in memory or on the disk."""


def write_shard_file(
    path: Path, header: Mapping[str, Any], arrays: Mapping[str, StoredArray]
) -> None:
    """Write a file of arrays: complete or not at all, and on the disk when this returns.

    Args:
        path: The file.
        header: What it is, in types that JSON knows.
        arrays: Its arrays by name; spools are closed.
    """
    whole = {"format": SHARD_FORMAT, "version": SHARD_VERSION, **header}
    text = np.frombuffer(json.dumps(whole, sort_keys=True).encode("ascii"), np.uint8)
    with (
        atomic_write(path, sync=True) as temporary,
        temporary.open("wb") as file,
        tempfile.TemporaryFile(dir=path.parent) as directory,
    ):
        archive = NpyArchive(file, directory)
        for name, array in {HEADER: text, **arrays}.items():
            if isinstance(array, ArraySpool):
                archive.add(name, array.dtype, array.shape, array.chunks())
                array.close()
            else:
                little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                archive.add(name, little.dtype, array.shape, _pieces(little))
        archive.finish()


def _pieces(array: npt.NDArray[Any]) -> Iterable[bytes]:
    data = array.reshape(-1).view(np.uint8).data
    return (bytes(data[k : k + _CHUNK]) for k in range(0, len(data), _CHUNK))


class ShardFile:
    """An open file of a shard, or of merged shards; its arrays are read when they are used."""

    def __init__(self, path: str | Path) -> None:
        """Open a file and read its header."""
        self.path = Path(path)
        check_regular(self.path)
        try:
            self._zip = zipfile.ZipFile(self.path)
            try:
                header = parse_json(bytes(self._load(HEADER)))
                known = header["format"] == SHARD_FORMAT and header["version"] <= SHARD_VERSION
            except BaseException:
                self._zip.close()
                raise
        except FileNotFoundError:
            raise InputError(f"{path} does not exist") from None
        except Exception as error:  # raised by zipfile, its codecs and NumPy
            raise FormatError(
                f"{path} is damaged or not a file of a sharded job ({error}); delete it and run "
                "the same command again"
            ) from None
        if not known or not isinstance(header.get("shard", {}), dict):
            self._zip.close()
            raise FormatError(
                f"{path} is not a file of a sharded job that this version of elmokit reads"
            )
        self.header: dict[str, Any] = header
        """What the file is."""
        self._rows: dict[str, CheckedRows] = {}

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        names = [name.removesuffix(".npy") for name in self._zip.namelist()]
        return [name for name in names if name != HEADER]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return a whole array; `rows` reads parts of a large one."""
        return self.rows(name)[:]

    def rows(self, name: str) -> CheckedRows:
        """Return an array that stays in the file, and whose rows are read when they are asked for.

        It has `shape`, `dtype` and `len`, and is indexed by a number, a slice or an array of
        numbers. Reading raises `FormatError` if the file was changed after it was opened.
        """
        if name not in self._rows:
            self._rows[name] = self._open_rows(name)
        return self._rows[name]

    def _open_rows(self, name: str) -> CheckedRows:
        try:
            info = self._zip.getinfo(f"{name}.npy")
            with self.path.open("rb") as file:
                file.seek(info.header_offset + 26)
                name_size, extra_size = struct.unpack("<HH", file.read(4))
                file.seek(name_size + extra_size, 1)
                np.lib.format.read_magic(file)
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
                offset = file.tell()
            if dtype.kind not in "biuf":  # NumPy takes the bytes of objects for addresses
                raise ValueError(f"it holds {dtype} (objects?), not numbers")
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed")
            if fortran or not shape or min(shape) < 0:
                raise ValueError(f"it has the shape {shape!s:.60}, or is stored by columns")
            if math.prod(shape) * dtype.itemsize > info.file_size:
                raise ValueError(f"it has {info.file_size:,} bytes for the shape {shape!s:.60}")
            return CheckedRows(self.path, dtype, shape, None, offset)
        except Exception as error:  # raised by zipfile and NumPy
            raise FormatError(f"{self.path}: the array {name!r} cannot be read: {error}") from None

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of an array of bytes, without line ends, in little memory."""
        try:
            with self._zip.open(f"{name}.npy") as file:
                np.lib.format.read_magic(file)
                np.lib.format.read_array_header_1_0(file)
                for line in file:
                    yield line.removesuffix(b"\n")
        except Exception as error:  # raised by zipfile, its codecs and NumPy
            raise FormatError(f"{self.path}: the array {name!r} cannot be read: {error}") from None

    def check(self) -> None:
        """Read the whole file, and raise `FormatError` if a checksum does not match."""
        try:
            damaged = self._zip.testzip()
        except Exception as error:  # raised by zipfile and its codecs
            raise FormatError(f"{self.path} is damaged: {error}") from None
        if damaged:
            raise FormatError(f"{self.path} is damaged: the checksum of {damaged} does not match")

    def close(self) -> None:
        """Close the file."""
        self._rows.clear()
        self._zip.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _load(self, name: str) -> Any:
        with self._zip.open(f"{name}.npy") as entry:
            return np.lib.format.read_array(entry, allow_pickle=False)
