"""A tree of the Stanford Sentiment Treebank, `(3 (2 very) (4 good))`, to words and phrases.

Every node has a label from 0 (very negative) to 4 (very positive). It knows brackets and the
Treebank's spelling of them; files and models it does not know.
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
    # As raw text has them: what `text.tokenize` will give a model that was trained on trees.
    "``": '"',
    "''": '"',
}


class Phrase(NamedTuple):
    """A node over more than one word of its tree: words[start:end] has the label."""

    start: int
    end: int
    label: int


class Tree(NamedTuple):
    """The words, the label of the whole, and the labels of the phrases in it."""

    words: tuple[str, ...]
    label: int
    phrases: tuple[Phrase, ...]
    """Inner nodes below the root, each after those inside it. Single words are no phrases."""


def parse(line: str, where: str) -> Tree:
    """The tree on a line; what is wrong with it is told with the line's place."""
    words: list[str] = []
    phrases: list[Phrase] = []
    open_nodes: list[tuple[int, int]] = []  # label, where it starts
    pieces = _PIECES.findall(line)
    root: int | None = None
    place = 0
    while place < len(pieces):
        piece = pieces[place]
        if root is not None:
            raise FormatError(
                f"{where}: {piece!r} after the tree's last bracket; expected one tree a line, "
                "with its brackets balanced"
            )
        if piece == "(":
            label = pieces[place + 1] if place + 1 < len(pieces) else "the end of the line"
            if label not in _LABELS:
                raise FormatError(
                    f"{where}: {label!r} after bracket {pieces[: place + 1].count('(')}; expected "
                    "a label from 0 (very negative) to 4 (very positive)"
                )
            open_nodes.append((int(label), len(words)))
            place += 1
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
        elif pieces[place - 2] != "(" or pieces[place + 1 : place + 2] not in ([")"], []):
            raise FormatError(
                f"{where}: the word {piece!r} has company in its bracket; expected '(label word)' "
                "for each word"
            )
        else:
            words.append(_unescaped(piece))
        place += 1
    if root is None:
        raise FormatError(
            f"{where}: {len(open_nodes)} brackets are not closed; expected a whole tree a line"
        )
    return Tree(tuple(words), root, tuple(phrases))


def _unescaped(word: str) -> str:
    return _SPELLING.get(word) or word.replace("\\/", "/").replace("\\*", "*")
