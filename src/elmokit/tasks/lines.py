"""A data file line by line, each with its place. What a line means is the reader's business."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import FormatError


def placed(path: Path) -> Iterator[tuple[str, str]]:
    """The place ("file:line") and the text of every line that is not blank."""
    for where, line in all_placed(path):
        if text := line.strip():
            yield where, text


def all_placed(path: Path) -> Iterator[tuple[str, str]]:
    """The place and the text of every line, as it is but for its end."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                where = f"{path}:{number}"
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise FormatError(
                        f"{where}: byte {error.start + 1} of the line is not UTF-8; "
                        "convert the file to UTF-8"
                    ) from None
                yield where, line.rstrip("\r\n")
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None
