"""Text files of all kinds: the one place where text is opened, decompressed and decoded.

Plain, gzip, bzip2, xz and Zstandard files are recognized by their first bytes, so that any name
will do and stdin may be compressed too; a Parquet file gives the rows of one column of strings.
Text is UTF-8, with or without a byte order mark. Only a newline ends a line. Nothing here holds
more than a block in memory, or knows sentences and words.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import FormatError, InputError
from elmokit.text import parquet
from elmokit.text.compressed import HEAD_BYTES, ByteStream, decompress, explain_damage
from elmokit.text.content import describe_content

STDIN = "-"
"""The file name that stands for standard input."""
LONGEST_LINE = 16 << 20
"""Length in bytes from which a line is cut between two words, since a block must fit in memory."""
LINES_BLOCK_BYTES = 1 << 18
"""Number of bytes that are read at once where lines are wanted one by one."""
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


class TextBlock(NamedTuple):
    """Some consecutive lines of a file."""

    name: str
    """Name of the file."""
    first_line: int
    """Number of the first line in the file, counting from 1."""
    data: bytes
    """The lines as they are in the file, after decompression."""


def read_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the location ("file:line") and the text of every line, without its line end.

    Args:
        path: A text file, compressed or not, or a Parquet file; `"-"` is stdin.
    """
    name = display_name(str(path))
    for number, line in TextFile(str(path)).lines():
        yield f"{name}:{number}", line


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a text file as bytes, decompressed if need be."""
    return b"".join(block.data for block in TextFile(str(path)).blocks(1 << 20))


def read_text(path: str | Path) -> str:
    """Return a whole file as one string, with line feeds as line ends and no byte order mark.

    Positions in it are those in what `open(path, encoding="utf-8-sig").read()` returns, if the file
    is not compressed.

    Args:
        path: A text file, compressed or not, or a Parquet file; `"-"` is stdin.
    """
    return "\n".join(line for _, line in read_lines(path))


def join_paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to paragraphs, which are separated by blank lines."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield "\n".join(paragraph)
            paragraph = []
    if paragraph:
        yield "\n".join(paragraph)


def find_files(paths: Iterable[str], leave_out: Iterable[str | Path] = ()) -> list[str]:
    """Return the files that paths, patterns and directories name, in a fixed order.

    Args:
        paths: Files, glob patterns and directories; `"-"` is stdin. A directory stands for all
            files under it, except hidden ones.
        leave_out: Files or directories to skip wherever they are found.
    """
    skipped = {Path(path).resolve() for path in leave_out}
    files: dict[str, None] = {}  # a set that keeps the order
    for path in map(os.path.expanduser, paths):
        if path == STDIN:
            files[path] = None
            continue
        matches = [path]
        if not os.path.exists(path) and glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise InputError(f"no file matches {path}")
        for match in matches:
            for file in _walk(Path(match)):
                resolved = file.resolve()
                if resolved not in skipped and skipped.isdisjoint(resolved.parents):
                    files[str(file)] = None
    return list(files)


def _walk(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path} does not exist; expected a text file or a directory of them")
        yield path
        return
    count = 0
    for directory, subdirectories, names in os.walk(path):
        subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                count += 1
                yield Path(directory, name)
    if not count:
        raise InputError(f"{path} is a directory without files; expected text files in it")


def decode_lines(block: TextBlock) -> Iterator[str]:
    """Yield the lines of a block as strings, without line ends and without a byte order mark."""
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
                f"{display_name(block.name)}, line {number} holds a NUL character, which no text "
                "has; remove it, or give another file"
            )
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield text.rstrip("\r")


def _not_utf8(name: str, number: int, line: bytes, position: int) -> str:
    return (
        f"{display_name(name)}, line {number} is not UTF-8 (byte 0x{line[position]:02x} at "
        f"{position}); convert it first, for example: iconv -f latin1 -t utf-8"
    )


def display_name(name: str) -> str:
    """Return the name of a file for messages: `stdin` instead of `-`."""
    return "stdin" if name == STDIN else name


class TextFile:
    """One text file, read once from its beginning to its end."""

    def __init__(self, name: str, column: str | None = None) -> None:
        """Prepare to read a file; nothing is opened yet.

        Args:
            name: Path of the file; `"-"` is stdin.
            column: Column of a Parquet file; by default `text`, or the only column of strings.
        """
        self.name = name
        self._column = column
        self._counter: _CountingReader | None = None
        self._position = 0
        self.sha256 = ""
        """Checksum of the file as it is on disk; empty until all blocks have been read."""

    @property
    def size(self) -> int | None:
        """Size of the file on disk in bytes; None for stdin."""
        return None if self.name == STDIN else os.path.getsize(self.name)

    @property
    def position(self) -> int:
        """Number of bytes that have been read from the disk."""
        return self._counter.count if self._counter else self._position

    @property
    def is_table(self) -> bool:
        """Whether the file is a Parquet file."""
        return self.name != STDIN and self._is_parquet(self._head())

    def texts(self) -> Iterator[str]:
        """Yield every line of a text file, or every row of a Parquet file.

        A row stays whole if it has several lines, and a row without text is an empty string, so
        that the number of a text is that of its row.
        """
        try:
            whole_rows = self.is_table
        except OSError as error:
            raise FormatError(f"{self.name} cannot be read: {error.strerror or error}") from None
        if not whole_rows:
            yield from (line for _, line in self.lines())
            return
        total = self.size or 0
        for row, fraction in parquet.read_text_column(self.name, self._column):
            self._position = int(fraction * total)
            yield row or ""
        self._position = total

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number, counting from 1, and the text of every line."""
        try:
            for block in self._blocks(LINES_BLOCK_BYTES, paragraphs=False, row_end="\n"):
                yield from enumerate(decode_lines(block), start=block.first_line)
        except OSError as error:
            raise FormatError(f"{self.name} cannot be read: {error.strerror or error}") from None

    def blocks(self, size: int, paragraphs: bool = False) -> Iterator[TextBlock]:
        """Yield all lines, in blocks of about `size` bytes.

        Args:
            size: Bytes to read at once.
            paragraphs: End blocks at blank lines, wherever there are any.
        """
        # Each row of a table is a text of its own, and its last paragraph ends with it.
        return self._blocks(size, paragraphs, row_end="\n\n")

    def _blocks(self, size: int, paragraphs: bool, row_end: str) -> Iterator[TextBlock]:
        with self._open() as raw:
            self._counter = _CountingReader(raw)
            stream = io.BufferedReader(self._counter, 1 << 18)
            head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
            if self._is_parquet(head):
                yield from self._parquet_blocks(size, row_end)
                return
            with explain_damage(display_name(self.name)):
                plain = decompress(stream, head, display_name(self.name))
            yield from self._line_blocks(plain, size, paragraphs)
            while stream.read(1 << 20):  # bytes behind the end of compressed data
                pass
            self.sha256 = self._counter.sha256.hexdigest()

    @contextmanager
    def _open(self) -> Iterator[ByteStream]:
        if self.name == STDIN:
            yield sys.stdin.buffer
        else:
            with open(self.name, "rb", buffering=0) as raw:
                yield raw

    def _head(self) -> bytes:
        with open(self.name, "rb") as file:
            return file.read(HEAD_BYTES)

    def _is_parquet(self, head: bytes) -> bool:
        if self.name.endswith((".parquet", ".pq")):
            return True
        if not head.startswith(parquet.PARQUET_MAGIC):
            return False
        if self.name == STDIN:
            raise InputError(
                "stdin is a Parquet file, which cannot be read from a pipe; give its path instead"
            )
        with open(self.name, "rb") as file:
            file.seek(-len(parquet.PARQUET_MAGIC), os.SEEK_END)
            return file.read() == parquet.PARQUET_MAGIC

    def _line_blocks(self, stream: ByteStream, size: int, paragraphs: bool) -> Iterator[TextBlock]:
        line = 1
        rest = b""
        name = display_name(self.name)
        while True:
            # Of a long line more each time, since all of it is copied and searched again.
            more = max(size, min(len(rest), LONGEST_LINE - len(rest)))
            with explain_damage(name):
                data = stream.read(more)
            if not data:
                break
            if line == 1 and not rest and (found := describe_content(data, name)):
                raise InputError(found)
            data = rest + data
            cut = _last_end(data, paragraphs)
            if not cut and len(data) >= LONGEST_LINE:
                cut = _last_end(data, paragraphs=False) or _between_words(data)
            if cut:
                block, rest = data[:cut], data[cut:]
                yield TextBlock(self.name, line, block)
                line += block.count(b"\n")
            else:
                rest = data
        if rest:
            yield TextBlock(self.name, line, rest)

    def _parquet_blocks(self, size: int, row_end: str) -> Iterator[TextBlock]:
        with open(self.name, "rb") as file:
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self._counter = None
        total = self.size or 0
        line = 1
        buffered: list[str] = []
        length = 0
        for row, fraction in parquet.read_text_column(self.name, self._column):
            self._position = int(fraction * total)
            if row is None:
                continue
            buffered.append(row)
            length += len(row)
            if length >= size:
                block = TextBlock(self.name, line, _join_rows(buffered, row_end))
                yield block
                line += block.data.count(b"\n")
                buffered, length = [], 0
        self._position = total
        if buffered:
            yield TextBlock(self.name, line, _join_rows(buffered, row_end))


def _join_rows(rows: Sequence[str], row_end: str) -> bytes:
    return "".join(row + row_end for row in rows).encode("utf-8")


def _last_end(data: bytes, paragraphs: bool) -> int:
    """Return where the last complete line or paragraph ends; 0 if none does."""
    end = data.rfind(b"\n") + 1
    if not paragraphs:
        return end
    # From the end in growing steps: paragraphs are short, blocks are not.
    reach = 1 << 12
    while True:
        start = max(0, len(data) - reach)
        last = 0
        for match in _BLANK_LINE.finditer(data, start):
            last = match.end()
        if last or not start:
            return last
        reach *= 4


def _between_words(data: bytes) -> int:
    """Return where a line without an end may be cut: after a space, else between characters."""
    if cut := data.rfind(b" ") + 1:
        return cut
    cut = len(data)
    while cut > 1 and data[cut - 1] & 0xC0 == 0x80:
        cut -= 1
    return cut - 1 or len(data)


class _CountingReader(io.RawIOBase):
    """A file that counts and hashes the bytes that are read from it."""

    def __init__(self, raw: ByteStream) -> None:
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
