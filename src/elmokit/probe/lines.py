"""A data file line by line, each with its place; plain or compressed, as `text.files` reads it.

What a line means is the reader's business. (`tasks.lines` does the same, but with torch around it.)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.text.files import TextFile, decode_lines

BLOCK_BYTES = 1 << 20


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """The place ("file:line") and the text of every line, as it is but for its end."""
    try:
        for block in TextFile(str(path)).blocks(BLOCK_BYTES):
            for number, line in enumerate(decode_lines(block), start=block.first_line):
                yield f"{path}:{number}", line
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
