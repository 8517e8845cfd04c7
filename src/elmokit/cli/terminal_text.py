"""Words of any script in the columns of a terminal: how wide they are, and what is safe to print.

A Han character takes two columns, a combining mark none. The width is the one that rich measures,
since rich lays out the tables.
"""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len

ISOLATE, END_ISOLATE = "\u2068", "\u2069"
"""First strong isolate and its end: text between them does not reorder the text around it."""


def printable(text: str) -> str:
    """Return the text without control characters, which could change the terminal."""
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def cut(text: str, width: int) -> str:
    """Return the printable text, cut to a number of columns with an ellipsis at its end."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    end = len(text)
    # Marks without a width stay with their letter, since they still fit.
    while end and cell_len(text[:end]) > width - 1:
        end -= 1
    return text[:end] + "…"


def isolate(text: str) -> str:
    """Return text that, written from right to left, does not reorder the rest of its line."""
    if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text):
        return f"{ISOLATE}{text}{END_ISOLATE}"
    return text


def fit(text: str, width: int) -> str:
    """Return text for a cell of a table: printable, cut to its width, and isolated."""
    return isolate(cut(text, width))
