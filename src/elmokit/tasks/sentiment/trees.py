"""Trees of the Stanford Sentiment Treebank, `(3 (2 very) (4 good))`, to words and phrases.

Every node has a label from 0 (very negative) to 4 (very positive). Knows brackets and the
Treebank's escapes for them, but neither files nor models.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from elmokit.errors import FormatError

_PIECES = re.compile(r"[()]|[^() \t]+")
_LABELS = frozenset("01234")
_SPELLING = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    # As raw text has them, so that training on trees and `text.tokenize` agree.
    "``": '"',
    "''": '"',
}


class Phrase(NamedTuple):
    """A node over more than one word of its tree."""

    start: int
    """Index of the first word."""
    end: int
    """Index after the last word."""
    label: int
    """Label of the phrase, from 0 to 4."""


class Tree(NamedTuple):
    """A labeled sentence with its labeled phrases."""

    words: tuple[str, ...]
    """The words of the sentence."""
    label: int
    """Label of the sentence, from 0 to 4."""
    phrases: tuple[Phrase, ...]
    """Inner nodes below the root, each after those inside it. Single words are not phrases."""


def parse_tree(line: str, where: str) -> Tree:
    """Return the tree of a line; `where` is the line's place, for messages."""
    words: list[str] = []
    phrases: list[Phrase] = []
    open_nodes: list[tuple[int, int]] = []  # label, first word
    pieces = _PIECES.findall(line)
    root: int | None = None
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        if root is not None:
            raise FormatError(
                f"{where}: {piece!r} after the tree's last bracket; expected one tree per line, "
                "with its brackets balanced"
            )
        if piece == "(":
            label = pieces[position + 1] if position + 1 < len(pieces) else "the end of the line"
            if label not in _LABELS:
                raise FormatError(
                    f"{where}: {label!r} after bracket {pieces[: position + 1].count('(')}; "
                    "expected a label from 0 (very negative) to 4 (very positive)"
                )
            open_nodes.append((int(label), len(words)))
            position += 1
        elif piece == ")":
            if not open_nodes:
                raise FormatError(f"{where}: the line begins with ')'; expected '(' and a label")
            number, start = open_nodes.pop()
            if start == len(words):
                raise FormatError(
                    f"{where}: '({number})' holds no word; expected a word or smaller trees"
                )
            if not open_nodes:
                root = number
            elif len(words) - start > 1:
                phrases.append(Phrase(start, len(words), number))
        elif not open_nodes:
            raise FormatError(f"{where}: {piece!r} found; expected '(' and a label: '(3 (2 It) …)'")
        elif pieces[position - 2] != "(" or pieces[position + 1 : position + 2] not in ([")"], []):
            raise FormatError(
                f"{where}: the word {piece!r} is not alone in its brackets; expected "
                "'(label word)' for each word"
            )
        else:
            words.append(_unescape(piece))
        position += 1
    if root is None:
        raise FormatError(
            f"{where}: {len(open_nodes)} brackets are not closed; expected one whole tree per line"
        )
    return Tree(tuple(words), root, tuple(phrases))


def _unescape(word: str) -> str:
    return _SPELLING.get(word) or word.replace("\\/", "/").replace("\\*", "*")
