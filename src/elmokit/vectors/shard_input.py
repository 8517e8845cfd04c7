"""Input of a sharded job: text files divided into pieces that together are the whole, each once.

A plain text file is divided at byte positions, always at the start of a line, or, where lines are
joined to paragraphs, after a blank line. A Parquet file is divided between row groups. A compressed
file is never divided. Knows nothing about models.
"""

from __future__ import annotations

import hashlib
import io
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from elmokit.errors import FormatError, InputError
from elmokit.storage import checksum
from elmokit.text import parquet
from elmokit.text.compressed import HEAD_BYTES, decompress, explain_damage
from elmokit.text.content import describe_content
from elmokit.text.files import (
    LONGEST_LINE,
    STDIN,
    TextBlock,
    TextFile,
    decode_lines,
    find_files,
    join_paragraphs,
)
from elmokit.text.sentences import split_sentences

LineForm = Literal["lines", "tokenized", "split"]
"""What a line is: a sentence, a sentence with spaces between its words, or running text."""
InputKind = Literal["text", "compressed", "parquet"]
"""What a file of the input is, which decides where it can be divided."""
EXPANSION = 3
"""Size of a compressed text after decompression, about, relative to its file."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class InputFile:
    """A file of the input."""

    path: str
    """Absolute path."""
    kind: InputKind
    """What it is."""
    size: int
    """Size in bytes."""


@dataclass(frozen=True)
class TextPiece:
    """A part of a file, or all of it."""

    file: int
    """Number of the file."""
    start: int
    """First byte, or first row group of a Parquet file."""
    end: int
    """Byte after the last one, or row group after the last one."""
    first_line: int
    """Number of lines, or rows, in the file before this piece."""
    lines: int | None
    """Number of lines, or rows; None for a compressed file, whose lines were not counted."""
    sha256: str
    """Checksum of the bytes; of a Parquet file, those of the text column."""


class LocatedSentence(NamedTuple):
    """A sentence of the input, and where it is. Locations grow, however the input is divided."""

    file: int
    """Number of the file."""
    offset: int
    """Byte position of its line or paragraph after decompression, or number of its row."""
    number: int
    """Number of the sentence in its line, paragraph or row, counting from 0."""
    sentence: str | list[str] | None
    """The sentence; None marks the end of a document."""

    @property
    def location(self) -> tuple[int, int, int]:
        """File, offset and number of the sentence."""
        return self[:3]


def find_inputs(paths: Sequence[str]) -> list[InputFile]:
    """Return the files that paths, patterns and directories name, in a fixed order."""
    files = []
    for path in find_files(paths):
        if path == STDIN:
            raise InputError("stdin cannot be divided into shards; give a file")
        try:
            files.append(_describe(os.path.abspath(path)))
        except OSError as error:
            raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    if not files:
        raise InputError("there are no files to embed; expected text or Parquet files")
    return files


def _describe(path: str) -> InputFile:
    size = os.path.getsize(path)
    if TextFile(path).is_table:
        return InputFile(path, "parquet", size)
    with open(path, "rb") as file:
        data = file.read(1 << 16)
    with io.BytesIO(data) as stream, explain_damage(path):
        plain = decompress(stream, data[:HEAD_BYTES], path) is stream
    if plain and (found := describe_content(data, path)):
        raise InputError(found)
    return InputFile(path, "text" if plain else "compressed", size)


# -- dividing --------------------------------------------------------------------------------------


def divide_input(
    files: Sequence[InputFile],
    shards: int,
    form: LineForm = "lines",
    column: str | None = None,
    on_bytes: Callable[[int], None] = lambda count: None,
) -> list[list[TextPiece]]:
    """Divide files into shards of about the same size, and return the pieces of each.

    Every line or row is in exactly one shard, and the order of the input is kept. There are fewer
    shards than asked for where the input cannot be divided so often.

    Args:
        files: The input.
        shards: Number of shards, at most.
        form: What a line is; running text is divided after blank lines only.
        column: Column of the text in Parquet files.
        on_bytes: Called with the number of bytes that were read, to show progress.
    """
    if shards < 1:
        raise InputError(f"shards is {shards}; expected 1 or more")
    tables = {
        k: parquet.list_row_groups(file.path, column)
        for k, file in enumerate(files)
        if file.kind == "parquet"
    }
    weights = [_weight(file, tables.get(k)) for k, file in enumerate(files)]
    starts = [0, *accumulate(weights)]
    cuts = {(0, 0), (len(files), 0)}
    last = (0, 0)
    for k in range(1, shards):
        target = k * starts[-1] // shards
        number = min(bisect_left(starts, target + 1) - 1, len(files) - 1)
        wanted = target - starts[number]
        behind = number < last[0]  # the last cut had to move beyond this place
        if files[number].kind == "text" and number == last[0]:
            behind = wanted <= last[1]
        if not behind:
            last = _snap(files, number, wanted, form, tables)
        cuts.add(last)
    divided = []
    lines_before: dict[int, int] = {}
    for begin, end in pairwise(sorted(cuts)):
        pieces = []
        for number in range(begin[0], min(end[0] + 1, len(files))):
            groups = tables.get(number)
            file = files[number]
            length = file.size if groups is None else len(groups)
            first = begin[1] if number == begin[0] else 0
            after = end[1] if number == end[0] else length
            if first < after:
                before = lines_before.get(number, 0)
                piece = _read_piece(number, file, first, after, before, groups, on_bytes)
                lines_before[number] = before + (piece.lines or 0)
                pieces.append(piece)
        if pieces:
            divided.append(pieces)
    return divided


def _weight(file: InputFile, groups: list[parquet.RowGroup] | None) -> int:
    if groups is not None:
        return sum(group.size for group in groups)
    return file.size * (EXPANSION if file.kind == "compressed" else 1)


def _snap(
    files: Sequence[InputFile],
    number: int,
    wanted: int,
    form: LineForm,
    tables: dict[int, list[parquet.RowGroup]],
) -> tuple[int, int]:
    """Return the first place at or after a wanted one at which the input can be divided."""
    file = files[number]
    if wanted <= 0:
        return number, 0
    if file.kind == "text":
        place = _next_line(file.path, wanted, paragraphs=form == "split")
        return (number, place) if place < file.size else (number + 1, 0)
    if file.kind == "parquet":
        ends = list(accumulate(group.size for group in tables[number]))
        place = bisect_left(ends, wanted) + 1
        return (number, place) if place < len(ends) else (number + 1, 0)
    return number + 1, 0


def _next_line(path: str, wanted: int, paragraphs: bool) -> int:
    """Return where the first line or paragraph begins at or after a byte position."""
    with open(path, "rb") as file:
        file.seek(wanted - 1)
        _skip_line(file)
        while paragraphs:
            blank, ended = _skip_line(file)
            if blank or not ended:
                break
        return file.tell()


def _skip_line(file: io.BufferedReader) -> tuple[bool, bool]:
    """Read to the end of a line; return whether it was blank, and whether it had an end."""
    blank = True
    while part := file.readline(_CHUNK):
        blank = blank and not part.strip(b" \t\r\n")
        if part.endswith(b"\n"):
            return blank, True
    return False, False


def _read_piece(
    number: int,
    file: InputFile,
    start: int,
    end: int,
    lines_before: int,
    groups: list[parquet.RowGroup] | None,
    on_bytes: Callable[[int], None],
) -> TextPiece:
    """Read a piece once, for its checksum and the number of its lines."""
    if groups is not None:
        chosen = groups[start:end]
        digest = parquet.hash_row_groups(file.path, chosen)
        on_bytes(sum(group.length for group in chosen))
        rows = sum(group.rows for group in chosen)
        return TextPiece(number, start, end, lines_before, rows, digest)
    if file.kind == "compressed":
        digest = checksum(file.path)
        on_bytes(file.size)
        return TextPiece(number, start, end, 0, None, digest)
    sha256, lines, last = hashlib.sha256(), 0, b"\n"
    with open(file.path, "rb") as stream:
        stream.seek(start)
        left = end - start
        while left and (data := stream.read(min(left, _CHUNK))):
            sha256.update(data)
            lines += data.count(b"\n")
            left -= len(data)
            last = data[-1:]
            on_bytes(len(data))
    if left:
        raise InputError(f"{file.path} became shorter while it was read; give a file that is final")
    return TextPiece(number, start, end, lines_before, lines + (last != b"\n"), sha256.hexdigest())


# -- reading ---------------------------------------------------------------------------------------


def read_sentences(
    files: Sequence[InputFile],
    pieces: Sequence[TextPiece],
    form: LineForm,
    column: str | None = None,
) -> Iterator[LocatedSentence]:
    """Yield the sentences of some pieces, and the ends of documents.

    A blank line ends a document, and so do the end of a file and a row of a Parquet file.

    Args:
        files: All files of the input.
        pieces: The pieces to read.
        form: What a line or row is.
        column: Column of the text in Parquet files.
    """
    for piece in pieces:
        file = files[piece.file]
        try:
            if file.kind == "parquet":
                yield from _read_rows(file, piece, form, column)
                continue
            lines = _read_lines(file, piece)
            if form == "split":
                yield from _split_paragraphs(piece.file, lines)
            else:
                for offset, line in lines:
                    sentence = line.split() if form == "tokenized" else line
                    yield LocatedSentence(piece.file, offset, 0, sentence)
                    if not line.strip():
                        yield LocatedSentence(piece.file, offset, 1, None)
            if piece.end == file.size:
                yield LocatedSentence(piece.file, file.size, 0, None)
        except OSError as error:
            raise FormatError(f"{file.path} cannot be read: {error.strerror or error}") from None


def _read_rows(
    file: InputFile, piece: TextPiece, form: LineForm, column: str | None
) -> Iterator[LocatedSentence]:
    groups = parquet.list_row_groups(file.path, column)[piece.start : piece.end]
    if parquet.hash_row_groups(file.path, groups) != piece.sha256:
        raise _changed(file)
    rows = parquet.read_text_column(file.path, column, range(piece.start, piece.end))
    for number, (row, _) in enumerate(rows, start=piece.first_line):
        text = row or ""
        if form == "split":
            paragraphs = join_paragraphs(text.split("\n"))
            sentences: list[str | list[str]] = [
                each.text for paragraph in paragraphs for each in split_sentences(paragraph)
            ]
        else:
            sentences = [text.split() if form == "tokenized" else text]
        for k, sentence in enumerate(sentences):
            yield LocatedSentence(piece.file, number, k, sentence)
        yield LocatedSentence(piece.file, number, len(sentences), None)


def _read_lines(file: InputFile, piece: TextPiece) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their byte positions; a very long line is cut."""
    if file.kind == "compressed" and checksum(file.path) != piece.sha256:
        raise _changed(file)
    with open(file.path, "rb") as raw:
        stream: Any = raw
        if file.kind == "compressed":
            with explain_damage(file.path):
                stream = decompress(raw, raw.peek(HEAD_BYTES)[:HEAD_BYTES], file.path)
        else:
            raw.seek(piece.start)
        left = piece.end - piece.start if file.kind == "text" else None
        sha256, offset, number, rest = hashlib.sha256(), piece.start, piece.first_line + 1, b""
        while True:
            limit = LONGEST_LINE - len(rest)
            with explain_damage(file.path):
                data = stream.readline(limit if left is None else min(limit, left))
            if left is not None:
                left -= len(data)
                sha256.update(data)
            line, rest = rest + data, b""
            if not line:
                break
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                cut = line.rfind(b" ") + 1 or _between_characters(line)
                line, rest = line[:cut], line[cut:]
            for text in decode_lines(TextBlock(file.path, number, line)):
                yield offset, text
            offset += len(line)
            number += line.endswith(b"\n")
    if left is not None and (left or sha256.hexdigest() != piece.sha256):
        raise _changed(file)


def _between_characters(line: bytes) -> int:
    cut = len(line)
    while cut > 1 and line[cut - 1] & 0xC0 == 0x80:
        cut -= 1
    return cut - 1 or len(line)


def _split_paragraphs(file: int, lines: Iterator[tuple[int, str]]) -> Iterator[LocatedSentence]:
    paragraph: list[str] = []
    start = 0

    def sentences() -> Iterator[LocatedSentence]:
        for k, sentence in enumerate(split_sentences("\n".join(paragraph))):
            yield LocatedSentence(file, start, k, sentence.text)

    for offset, line in lines:
        if line.strip():
            start = start if paragraph else offset
            paragraph.append(line)
            continue
        if paragraph:
            yield from sentences()
            paragraph = []
        yield LocatedSentence(file, offset, 0, None)
    if paragraph:
        yield from sentences()


def _changed(file: InputFile) -> InputError:
    return InputError(
        f"{file.path} has changed since the job was planned; restore it, or begin a new job in "
        "another directory"
    )
