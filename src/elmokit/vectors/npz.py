"""Vectors in .npz files, which `np.load(path)` opens without pickle.

    "0", "1", …   one array per sentence, (L+1, T, D) or (T, D)
    lengths       (N,) int32, the number of words of each sentence
    words         (bytes,) uint8, one line per sentence: its words as a JSON list in ASCII;
                  bytes(z["words"]).splitlines() gives them back
    signature     JSON as a string, json.loads(str(z["signature"]))
    job           SHA-256 of the settings and sentences of the run, as a string
    layout        the version of this layout
    ids           (N,) strings, where sentences have ids, such as proteins
    pooled        true, where the arrays are pooled: (L+1, D) or (D,)

NumPy's `savez` needs all arrays at once, and Python's zipfile keeps an object per entry until it
closes, so the ZIP file is written here: uncompressed entries, always with the 64-bit fields, so
that neither 4 GB nor 65,535 entries are a limit. The reader holds zipfile's table of entries in
memory (about 600 bytes each), never the arrays. How a write survives an interruption is the
business of `spool.py`.
"""

from __future__ import annotations

import io
import itertools
import json
import shutil
import struct
import tempfile
import zipfile
import zlib
from array import array as numbers
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from elmokit.errors import FormatError
from elmokit.json_text import is_list_of_text, parse_json
from elmokit.vectors.spool import Spool, VectorArray, parse_text

NAME = "npz"
LAYOUT = 2
"""Version of the layout; version 1 has no ids and no pooled vectors."""
_DAMAGE = (ValueError, TypeError, OverflowError)
"""What a file raises whose index holds something else than the words and numbers expected."""
_ENTRIES = {"lengths", "words", "signature", "job", "layout", "ids", "pooled"}
"""Names of entries besides the numbers of the sentences."""
_LARGEST_RATIO = 20
"""Compression ratio of a large array at most: vectors never compress that well."""
_SMALL_BYTES = 1 << 26
"""Size of an array in bytes that may have any compression ratio."""


def check_installed() -> None:
    """Do nothing, since NumPy is always installed."""


def write(path: Path, spool: Spool) -> None:
    """Write the sentences of a complete spool to an .npz file."""
    lengths = numbers("i")
    with path.open("wb") as file, tempfile.TemporaryFile(dir=path.parent) as directory:
        archive = NpyArchive(file, directory)
        for position, (text, vectors) in enumerate(spool.records()):
            stored = vectors[..., 0, :] if spool.pooled else vectors
            archive.add(str(position), stored.dtype, stored.shape, [stored.tobytes()])
            lengths.append(len(parse_text(text)[1]) if spool.pooled else vectors.shape[-2])
        archive.add("lengths", np.dtype("<i4"), (len(lengths),), [np.array(lengths, "<i4").data])
        size = sum(map(len, _word_lines(spool)))
        archive.add("words", np.dtype("u1"), (size,), _word_lines(spool))
        if spool.has_ids:
            longest = max((len(id or "") for id, _ in spool.sentences()), default=1)
            strings = np.dtype(f"<U{max(longest, 1)}")
            chunks = (np.array(id, strings).tobytes() for id, _ in spool.sentences())
            archive.add("ids", strings, (spool.count,), chunks)
        if spool.pooled:
            archive.add("pooled", np.dtype("?"), (), [np.array(True).tobytes()])
        signature = np.array(json.dumps(spool.header["signature"]), "<U")
        archive.add("signature", signature.dtype, (), [signature.tobytes()])
        job = np.array(spool.job(), "<U64")
        archive.add("job", job.dtype, (), [job.tobytes()])
        layout = LAYOUT if spool.has_ids or spool.pooled else 1
        archive.add("layout", np.dtype("<i8"), (), [np.array(layout, "<i8").tobytes()])
        archive.finish()


def _word_lines(spool: Spool) -> Iterator[bytes]:
    """Yield the words of each sentence as a JSON list, one per line."""
    for text in spool.texts():
        yield (json.dumps(parse_text(text)[1]).encode("ascii") if spool.has_ids else text) + b"\n"


class NpyArchive:
    """A ZIP file of uncompressed .npy entries, whose directory is in a file until the end.

    Equal content gives equal bytes: there are no times in it.
    """

    # Everything that can need 64 bits is in the "extra" field 1, with all ones in its old field.
    _LOCAL = struct.Struct("<IHHHHHIIIHH")
    _ENTRY = struct.Struct("<IHHHHHHIIIHHHHHII")
    END64 = struct.Struct("<IQHHIIQQQQ")
    LOCATOR = struct.Struct("<IIQI")
    END = struct.Struct("<IHHHHIIH")
    _VERSION, _DATE, _FULL = 45, (1 << 5) | 1, 0xFFFFFFFF  # 1980-01-01: equal input, equal bytes

    def __init__(self, file: BinaryIO, directory: IO[bytes]) -> None:
        self._file, self._directory, self._count = file, directory, 0

    def add(
        self,
        name: str,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        chunks: Iterable[bytes | memoryview],
    ) -> None:
        """Write an array, given as its bytes.

        Args:
            name: Name of the entry, without `.npy`.
            dtype: Type of its numbers.
            shape: Its shape.
            chunks: Its bytes, in pieces of any size.
        """
        head = io.BytesIO()
        descr = np.lib.format.dtype_to_descr(dtype)
        np.lib.format.write_array_header_1_0(
            head, {"descr": descr, "fortran_order": False, "shape": shape}
        )
        encoded = f"{name}.npy".encode("ascii")
        offset = self._file.tell()
        self._local(encoded, 0, 0)
        crc = size = 0
        for chunk in itertools.chain([head.getvalue()], chunks):
            crc = zlib.crc32(chunk, crc)
            size += memoryview(chunk).nbytes
            self._file.write(chunk)
        self._file.seek(offset)  # only now are the checksum and the size known
        self._local(encoded, crc, size)
        self._file.seek(0, io.SEEK_END)
        extra = struct.pack("<HHQQQ", 1, 24, size, size, offset)
        self._directory.write(
            self._ENTRY.pack(
                *(0x02014B50, self._VERSION, self._VERSION, 0, 0, 0, self._DATE, crc),
                *(self._FULL, self._FULL, len(encoded), len(extra), 0, 0, 0, 0, self._FULL),
            )
            + encoded
            + extra
        )
        self._count += 1

    def _local(self, name: bytes, crc: int, size: int) -> None:
        extra = struct.pack("<HHQQ", 1, 16, size, size)
        fields = (0x04034B50, self._VERSION, 0, 0, 0, self._DATE, crc, self._FULL, self._FULL)
        self._file.write(self._LOCAL.pack(*fields, len(name), len(extra)) + name + extra)

    def finish(self) -> None:
        """Write the directory of the archive, after the last array."""
        start = self._file.tell()
        self._directory.seek(0)
        shutil.copyfileobj(self._directory, self._file)
        end = self._file.tell()
        count, version, full = self._count, self._VERSION, self._FULL
        self._file.write(
            self.END64.pack(
                *(0x06064B50, self.END64.size - 12, version, version, 0, 0),
                *(count, count, end - start, start),
            )
            + self.LOCATOR.pack(0x07064B50, 0, end, 1)
            + self.END.pack(0x06054B50, 0, 0, 0xFFFF, 0xFFFF, full, full, 0)
        )


def open_file(path: Path) -> NpzReader:
    """Open an .npz file of elmokit, or of `np.savez` with the names "0", "1", …."""
    return NpzReader(path)


def _check_names(names: Iterable[str], *, known_only: bool) -> None:
    """Raise `ValueError` if an entry has a name that nobody gives: the directory is damaged."""
    for name in names:
        bare = name.removesuffix(".npy")
        if bare == name or (known_only and not bare.isdigit() and bare not in _ENTRIES):
            raise ValueError(f"it has an entry {name!r:.60}; expected arrays (.npy)")


def _count_entries(path: Path) -> int:
    """Return how many entries the end of a ZIP file says that it has.

    zipfile reads the list of entries by its size in bytes: where the length of one is damaged, it
    passes over others without an error.

    Raises:
        ValueError: The file does not end as a ZIP file without a comment does.
    """
    end64, locator, end = (NpyArchive.END64.size, NpyArchive.LOCATOR.size, NpyArchive.END.size)
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(size - end64 - locator - end, 0))
        tail = file.read()
    if len(tail) < end or tail[-end : -end + 4] != b"PK\5\6":
        raise ValueError("it has something behind its list of entries")
    count: int = NpyArchive.END.unpack(tail[-end:])[4]
    if tail[:4] == b"PK\6\6" and tail[end64 : end64 + 4] == b"PK\6\7":
        count = NpyArchive.END64.unpack(tail[:end64])[7]
    return count


class NpzReader:
    """An open .npz file of vectors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except Exception as error:  # a damaged archive can raise nearly anything inside zipfile
            raise FormatError(f"{path} cannot be read as an .npz file: {error}") from None
        self.signature: dict[str, Any] | None = None
        self.job: str | None = None
        self._lines: IO[bytes] | None = None
        self._ends = numbers("q")
        try:
            layout = int(self._load("layout")) if "layout.npy" in self._zip.NameToInfo else None
            if layout is not None and layout > LAYOUT:
                raise FormatError(
                    f"{path} has layout {layout}, but this version of elmokit reads up to "
                    f"{LAYOUT}; update it with: pip install -U elmokit"
                )
            if layout is not None:
                self.signature = parse_json(str(self._load("signature")))
                if not isinstance(self.signature, dict):
                    raise ValueError("it does not say how it was made")
                if "job.npy" in self._zip.NameToInfo:
                    self.job = str(self._load("job"))
            names = self._zip.NameToInfo
            _check_names(names, known_only=layout is not None)
            if (listed := _count_entries(path)) != len(names):
                raise ValueError(f"it has {listed} entries, of which {len(names)} can be found")
            if layout is None and {"lengths.npy", "words.npy", "signature.npy"} & set(names):
                raise ValueError("it has no layout")
            self.count = sum(name.removesuffix(".npy").isdigit() for name in names)
            self._pooled = "pooled.npy" in names
            self._lengths = self._load("lengths") if "lengths.npy" in names else None
            if self._lengths is not None and (
                self._lengths.ndim != 1 or self._lengths.dtype.kind not in "iu"
            ):
                raise ValueError(f"it has {self._lengths.dtype} in place of numbers of words")
            expected = self.count if self._lengths is None else len(self._lengths)
            missing = next((i for i in range(expected) if f"{i}.npy" not in names), None)
            if missing is not None or self.count != expected:
                raise FormatError(
                    f"{path} is damaged: it holds {self.count} sentences, but {expected} according "
                    "to "
                    "the index" + ("" if missing is None else f"; number {missing} is missing")
                )
        except BaseException as error:
            self._zip.close()
            if isinstance(error, _DAMAGE):
                raise FormatError(
                    f"{path} is damaged or not a file of vectors: its index cannot be read "
                    f"({error})"
                ) from None
            raise

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence."""
        try:
            array: VectorArray = self._load(str(position))
        except _DAMAGE as error:
            raise FormatError(
                f"{self.path}: sentence {position} of {self.count} cannot be read: {error}"
            ) from None
        if array.ndim not in ((1, 2) if self._pooled else (2, 3)) or array.dtype.kind != "f":
            expected = "(D,) or (layers, D)" if self._pooled else "(T, D) or (layers, T, D)"
            raise FormatError(
                f"{self.path}: sentence {position} is {array.dtype} of shape {array.shape}; "
                f"expected floats of shape {expected}"
            )
        if self._pooled:
            return array
        if self._lengths is not None and array.shape[-2] != self._lengths[position]:
            raise FormatError(
                f"{self.path} is damaged: sentence {position} has the shape {array.shape}, but has "
                f"{self._lengths[position]} words according to the index"
            )
        return array

    def words(self, position: int) -> list[str] | None:
        """Return the words of a sentence; None if a file of another program does not hold them."""
        if "words.npy" not in self._zip.NameToInfo:
            return None
        try:
            lines = self._lines or self._open_lines()
            lines.seek(self._ends[position])
            words: list[str] = parse_json(
                lines.read(self._ends[position + 1] - self._ends[position])
            )
        except Exception as error:  # raised by zipfile, or the lines are not JSON
            raise FormatError(
                f"{self.path}: the words of sentence {position} cannot be read: {error}"
            ) from None
        count = "any" if self._lengths is None else self._lengths[position]
        if not is_list_of_text(words) or count not in ("any", len(words)):
            raise FormatError(
                f"{self.path} is damaged: sentence {position} has the words {words!s:.80}; "
                f"expected {count} words"
            )
        return words

    def ids(self) -> list[str] | None:
        """Return the ids of all sentences; None if they have none."""
        if "ids.npy" not in self._zip.NameToInfo:
            return None
        try:
            ids = self._load("ids").tolist()
        except _DAMAGE as error:
            raise FormatError(f"{self.path}: its ids cannot be read: {error}") from None
        if not is_list_of_text(ids) or len(ids) != self.count:
            raise FormatError(
                f"{self.path} is damaged: it has the ids {ids!s:.80}; expected {self.count} ids"
            )
        return ids

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()
        self._zip.close()

    def _load(self, name: str) -> Any:
        """Return an array of the archive; raise `ValueError` if it cannot be read."""
        try:
            info = self._zip.getinfo(f"{name}.npy")
            if info.file_size > max(_SMALL_BYTES, _LARGEST_RATIO * info.compress_size):
                raise ValueError(f"it would unpack to {info.file_size:,} bytes")
            with self._zip.open(info) as entry:
                array = np.lib.format.read_array(entry, allow_pickle=False)
                if entry.read(1):  # a header that lies; the checksum is compared only at the end
                    raise ValueError(f"{name} is larger than its header says")
                return array
        except Exception as error:  # zipfile, its codecs and NumPy raise nearly anything
            raise ValueError(f"{error}") from None

    def _open_lines(self) -> IO[bytes]:
        """Find out where each line of `words` ends, once; the lines themselves stay in the file."""
        lines = self._zip.open("words.npy")
        np.lib.format.read_magic(lines)
        np.lib.format.read_array_header_1_0(lines)
        self._ends = numbers("q", [lines.tell()])
        for line in lines:
            self._ends.append(self._ends[-1] + len(line))
        if len(self._ends) != self.count + 1:
            raise ValueError(f"{len(self._ends) - 1} lines for {self.count} sentences")
        self._lines = lines
        return lines
