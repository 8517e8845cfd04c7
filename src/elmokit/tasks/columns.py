"""Files in columns, as the CoNLL shared tasks have them: a word a line, blank lines between.

What a column means is the reader's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmokit.tasks.lines import all_placed

_BETWEEN = re.compile(r"[ \t]+")  # a no-break space may be a word


class Row(NamedTuple):
    """A line: where it is ("file:line"), and its cells."""

    where: str
    cells: list[str]


def blocks(path: Path) -> Iterator[list[Row]]:
    """The lines between blank ones, block by block.

    Cells are separated by spaces and tabs; in a line that begins with one, the first is empty.
    """
    block: list[Row] = []
    for where, text in all_placed(path):
        if line := text.rstrip(" \t"):
            block.append(Row(where, _BETWEEN.split(line)))
        elif block:
            yield block
            block = []
    if block:
        yield block
