"""Dataset files line by line, each line with its place; and files in columns.

What a line or a column means is the reader's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmokit.text.files import read_lines

_SEPARATOR = re.compile(r"[ \t]+")  # not \s: a no-break space may be a word


class ColumnRow(NamedTuple):
    """One line of a file in columns."""

    where: str
    """Its place, as `file:line`."""
    cells: list[str]
    """The text of each column."""


def nonblank_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place (`file:line`) and the stripped text of every line that is not blank."""
    for where, line in read_lines(path):
        if text := line.strip():
            yield where, text


def column_blocks(path: Path) -> Iterator[list[ColumnRow]]:
    """Yield the blocks of rows of a file in columns, as the CoNLL shared tasks have them.

    Blank lines separate blocks. Spaces and tabs separate cells; in a line that begins with one, the
    first cell is empty.
    """
    block: list[ColumnRow] = []
    for where, text in read_lines(path):
        if line := text.rstrip(" \t"):
            block.append(ColumnRow(where, _SEPARATOR.split(line)))
        elif block:
            yield block
            block = []
    if block:
        yield block
