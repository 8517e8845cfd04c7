"""Sentences whose words have tags: lines of a word and its tags between tabs, a blank line between
sentences. Knows nothing about models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError, InputError

COLUMNS = ("UPOS", "XPOS")
"""The universal part of speech and the Treebank's own tag."""


@dataclass(frozen=True)
class Tagged:
    """The sentences of a file."""

    sentences: list[list[str]]
    tags: dict[str, list[str]]
    """By the name of the column: one tag a word, over all sentences one after another."""

    @property
    def words(self) -> list[str]:
        """Of all sentences, one after another."""
        return [word for sentence in self.sentences for word in sentence]


def read_tagged(path: str | Path, columns: Sequence[str] = COLUMNS) -> Tagged:
    """Read a file; `columns` are the names of the tags in it, in order."""
    path = Path(path).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist; expected a file of words and tags between tabs"
        ) from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8: {error}") from None
    sentences: list[list[str]] = [[]]
    tags: dict[str, list[str]] = {name: [] for name in columns}
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r")
        if not line.strip():
            if sentences[-1]:
                sentences.append([])
            continue
        fields = line.split("\t")
        if len(fields) != 1 + len(columns) or not all(fields):
            raise FormatError(
                f"{path}, line {number} is {line[:60]!r}; expected a word, "
                f"{' and '.join(columns)}, with tabs between them"
            )
        sentences[-1].append(fields[0])
        for name, tag in zip(columns, fields[1:], strict=True):
            tags[name].append(tag)
    if not sentences[-1]:
        sentences.pop()
    if not sentences:
        raise FormatError(f"{path} has no words; expected lines of a word and its tags")
    return Tagged(sentences, tags)
