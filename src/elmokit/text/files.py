"""Text files of all kinds as blocks of whole lines, and how much of them was read.

Plain, gzip, bzip2, xz and Zstandard are told apart by their first bytes, so that a name need not
say it and stdin may be compressed too; Parquet gives the rows of one column of strings. Only a
newline ends a line. Nothing here holds more than a block, or knows sentences and words.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import FormatError, InputError
from elmokit.text import parquet
from elmokit.text.compressed import HEAD, Stream, decompressed, readable

STDIN = "-"
LONGEST_LINE = 16 << 20
"""Bytes; a longer line is cut between two words, since a block has to fit into memory."""
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


class Block(NamedTuple):
    """Some lines of a file that follow each other."""

    name: str
    """The file's."""
    first_line: int
    """The number of the first line in the file, from 1."""
    data: bytes


def paragraphs_of(lines: Iterable[str]) -> Iterator[str]:
    """Lines joined to paragraphs, which blank lines separate."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield "\n".join(paragraph)
            paragraph = []
    if paragraph:
        yield "\n".join(paragraph)


def checksum(path: str | Path) -> str:
    """SHA-256 of a file, or of all files of a directory with their names."""
    place = Path(path).expanduser()
    try:
        if not place.is_dir():
            with place.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    digest = hashlib.sha256()
    for each in sorted(place.rglob("*")):
        if each.is_file():
            digest.update(f"{each.relative_to(place).as_posix()} {checksum(each)}\n".encode())
    return digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    """A file, at once or not at all."""
    stage = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        stage.write_text(text, encoding="utf-8", newline="\n")
        os.replace(stage, path)
    finally:
        stage.unlink(missing_ok=True)


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """The place ("file:line") and the text of every line, as it is but for its end."""
    try:
        for block in TextFile(str(path)).blocks(1 << 20):
            for number, line in enumerate(decode_lines(block), start=block.first_line):
                yield f"{path}:{number}", line
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None


def find_files(paths: Iterable[str], leave_out: Iterable[str | Path] = ()) -> list[str]:
    """The files that paths, patterns and directories name, in a fixed order; `-` is stdin.

    A directory stands for all files under it but hidden ones. `leave_out` are files, or whole
    directories, that are not wanted even if they are found there.
    """
    left_out = {Path(path).resolve() for path in leave_out}
    found: dict[str, None] = {}  # a set that keeps the order
    for path in map(os.path.expanduser, paths):
        if path == STDIN:
            found[path] = None
            continue
        matches = [path]
        if not os.path.exists(path) and glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise InputError(f"no file matches {path}")
        for match in matches:
            for file in _walk(Path(match)):
                place = file.resolve()
                if place not in left_out and left_out.isdisjoint(place.parents):
                    found[str(file)] = None
    return list(found)


def _walk(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path} does not exist; expected a text file or a directory of them")
        yield path
        return
    files = 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                files += 1
                yield Path(folder, name)
    if not files:
        raise InputError(f"{path} is a directory without files; expected text in it")


def decode_lines(block: Block) -> Iterator[str]:
    """The lines of a block as strings, without what ends them or a byte order mark."""
    lines = block.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=block.first_line):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(_not_utf8(block.name, number, line, error.start)) from None
        if "\0" in text:
            raise InputError(
                f"{shown(block.name)}, line {number} holds a NUL character: it is no UTF-8 text "
                "but UTF-16 or a binary file; convert it first, e.g. iconv -f utf-16 -t utf-8"
            )
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield text.rstrip("\r")


def _not_utf8(name: str, number: int, line: bytes, place: int) -> str:
    encoding = "latin1"
    if number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    return (
        f"{shown(name)}, line {number} is not UTF-8 (byte 0x{line[place]:02x} at {place}); "
        f"convert it first, e.g. iconv -f {encoding} -t utf-8"
    )


def shown(name: str) -> str:
    """A file's name in a message."""
    return "stdin" if name == STDIN else name


class TextFile:
    """One text file, read once from its beginning to its end."""

    def __init__(self, name: str, column: str | None = None) -> None:
        """`column` is the column of a Parquet file; `text`, or the only one of strings, if None."""
        self.name = name
        self._column = column
        self._tally: _Tally | None = None
        self._position = 0
        self.sha256 = ""
        """Of the bytes of the file (compressed, if it is); known when all blocks were read."""

    @property
    def size(self) -> int | None:
        """The bytes of the file, where that can be known."""
        return None if self.name == STDIN else os.path.getsize(self.name)

    @property
    def position(self) -> int:
        """How many of its bytes were read."""
        return self._tally.count if self._tally else self._position

    def blocks(self, size: int, paragraphs: bool = False) -> Iterator[Block]:
        """All lines, in blocks of about `size` bytes.

        With `paragraphs` a block ends at a blank line, wherever there is one.
        """
        with self._opened() as raw:
            self._tally = _Tally(raw)
            stream = io.BufferedReader(self._tally, 1 << 18)
            head = stream.peek(HEAD)[:HEAD]
            if self._is_parquet(head):
                yield from self._parquet_blocks(size)
                return
            with readable(shown(self.name)):
                plain = decompressed(stream, head, shown(self.name))
            yield from self._line_blocks(plain, size, paragraphs)
            while stream.read(1 << 20):  # what may stand behind the end of compressed data
                pass
            self.sha256 = self._tally.sha256.hexdigest()

    @contextmanager
    def _opened(self) -> Iterator[Stream]:
        if self.name == STDIN:
            yield sys.stdin.buffer
        else:
            with open(self.name, "rb", buffering=0) as raw:
                yield raw

    def _is_parquet(self, head: bytes) -> bool:
        if self.name.endswith((".parquet", ".pq")):
            return True
        if not head.startswith(parquet.MAGIC):
            return False
        if self.name == STDIN:
            raise InputError("stdin is a Parquet file, which is not read in order: give its path")
        with open(self.name, "rb") as file:
            file.seek(-len(parquet.MAGIC), os.SEEK_END)
            return file.read() == parquet.MAGIC

    def _line_blocks(self, stream: Stream, size: int, paragraphs: bool) -> Iterator[Block]:
        line = 1
        rest = b""
        while True:
            with readable(shown(self.name)):
                data = stream.read(size)
            if not data:
                break
            data = rest + data
            cut = _last_end(data, paragraphs)
            if not cut and len(data) >= LONGEST_LINE:
                cut = _last_end(data, paragraphs=False) or _between_words(data)
            if cut:
                block, rest = data[:cut], data[cut:]
                yield Block(self.name, line, block)
                line += block.count(b"\n")
            else:
                rest = data
        if rest:
            yield Block(self.name, line, rest)

    def _parquet_blocks(self, size: int) -> Iterator[Block]:
        with open(self.name, "rb") as file:
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self._tally = None
        total = self.size or 0
        line = 1
        buffered: list[str] = []
        length = 0
        for row, done in parquet.rows_of(self.name, self._column):
            self._position = int(done * total)
            buffered.append(row)
            length += len(row)
            if length >= size:
                block = Block(self.name, line, _joined(buffered))
                yield block
                line += block.data.count(b"\n")
                buffered, length = [], 0
        self._position = total
        if buffered:
            yield Block(self.name, line, _joined(buffered))


def _joined(rows: Sequence[str]) -> bytes:
    # Each row is a text of its own, whose last paragraph ends with it.
    return "".join(f"{row}\n\n" for row in rows).encode("utf-8")


def _last_end(data: bytes, paragraphs: bool) -> int:
    """Where the last complete line or paragraph ends; 0 if none does."""
    end = data.rfind(b"\n") + 1
    if not paragraphs:
        return end
    # From the end in growing steps: paragraphs are short, blocks are not.
    reach = 1 << 12
    while True:
        start = max(0, len(data) - reach)
        last = 0
        for found in _BLANK_LINE.finditer(data, start):
            last = found.end()
        if last or not start:
            return last
        reach *= 4


def _between_words(data: bytes) -> int:
    """Where a line without an end may be cut: behind a space, else between two characters."""
    if cut := data.rfind(b" ") + 1:
        return cut
    cut = len(data)
    while cut > 1 and data[cut - 1] & 0xC0 == 0x80:
        cut -= 1
    return cut - 1 or len(data)


class _Tally(io.RawIOBase):
    """A file that counts and hashes what is read from it."""

    def __init__(self, raw: Stream) -> None:
        self._raw = raw
        self.count = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer)) or b""
        buffer[: len(data)] = data
        self.count += len(data)
        self.sha256.update(data)
        return len(data)
