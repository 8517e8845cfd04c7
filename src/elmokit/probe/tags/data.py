"""Sentences whose words have tags: a word a line, blank lines between sentences.

Three forms are read: a word and its tags between tabs; CoNLL-U, the form of Universal Dependencies;
and columns between spaces, as the CoNLL shared tasks have them. Knows nothing about models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from elmokit.errors import FormatError, InputError
from elmokit.text.files import lines_of

Form = Literal["tabs", "conllu", "spaces"]

CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
NOTHING = "_"
"""What CoNLL-U has where there is no tag."""
DOCUMENT = "-DOCSTART-"
"""The line between documents of CoNLL-2003: no word."""
NAMES: dict[tuple[str, int], tuple[str, ...]] = {
    ("tabs", 2): ("word", "tag"),
    ("tabs", 3): ("word", "UPOS", "XPOS"),
    ("tabs", 4): ("word", "pos", "chunk", "ner"),
    ("spaces", 2): ("word", "tag"),
    ("spaces", 3): ("word", "pos", "chunk"),
    ("spaces", 4): ("word", "pos", "chunk", "ner"),
}
"""What the columns are called, by form and number; others are called by their numbers."""
PARTS_OF_SPEECH = ("UPOS", "XPOS", "pos", "tag")
"""The columns that are read if nobody says which."""

_ID = re.compile(r"\d+(?:[-.]\d+)?")
_BETWEEN = re.compile(r"[ \t]+")  # a no-break space may be a word


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

    def first(self, words: int) -> Tagged:
        """The sentences from the beginning until there are so many words, or all of them."""
        kept: list[list[str]] = []
        count = 0
        for sentence in self.sentences:
            if count >= words:
                break
            kept.append(sentence)
            count += len(sentence)
        return Tagged(kept, {name: tags[:count] for name, tags in self.tags.items()})


def read_tagged(
    path: str | Path, columns: Sequence[str] | None = None, form: str | None = None
) -> Tagged:
    """Read a file.

    Args:
        path: UTF-8.
        columns: which tags, by the name of the column or its number, the first column being 1; the
            parts of speech by default. A column of CoNLL-U in which nothing stands is not there.
        form: `"tabs"`, `"conllu"` or `"spaces"`; what the first lines look like by default.
    """
    path = Path(path).expanduser()
    if form is not None and form not in get_args(Form):
        raise InputError(f"form is {form!r}; expected one of {', '.join(get_args(Form))}")
    shape = _shape(path, form)
    chosen = _chosen(path, shape, columns)
    reading = _Reading({name: [] for name in chosen})
    for where, line in lines_of(path):
        if not line.strip(" \t"):
            reading.end_sentence()
        elif (cells := _cells(where, line, shape)) is not None:
            reading.add(where, cells[shape.word], {name: cells[i] for name, i in chosen.items()})
    reading.end_sentence()
    if not reading.sentences:
        raise FormatError(f"{path} has no words; expected lines of a word and its tags")
    tags = {n: each for n, each in reading.tags.items() if not shape.conllu or _says(each)}
    if missing := [name for name in columns or () if _name(name, shape) not in tags]:
        raise FormatError(f"{path} has nothing in the column {', '.join(missing)}, only {NOTHING}")
    if not tags:
        raise FormatError(f"{path} has neither UPOS nor XPOS, only {NOTHING}; expected tags there")
    return Tagged(reading.sentences, tags)


class _Shape(NamedTuple):
    """What the lines of a file look like."""

    form: str
    names: tuple[str, ...]

    @property
    def conllu(self) -> bool:
        return self.form == "conllu"

    @property
    def word(self) -> int:
        """Which cell holds the word."""
        return 1 if self.conllu else 0


@dataclass
class _Reading:
    """What was read so far."""

    tags: dict[str, list[str]]
    sentences: list[list[str]] = field(default_factory=list)
    _sentence: list[str] = field(default_factory=list)

    def add(self, where: str, word: str, tags: Mapping[str, str]) -> None:
        if not word.strip() or not all(tags.values()):
            raise FormatError(f"{where}: a cell is empty; expected a word and {', '.join(tags)}")
        self._sentence.append(word)
        for name, tag in tags.items():
            self.tags[name].append(tag)

    def end_sentence(self) -> None:
        if self._sentence:
            self.sentences.append(self._sentence)
            self._sentence = []


def _shape(path: Path, form: str | None) -> _Shape:
    """By the first line that is neither blank nor a comment."""
    for where, line in islice(lines_of(path), 10_000):
        if not line.strip() or line.startswith(DOCUMENT):
            continue
        cells = line.split("\t")
        if form != "spaces" and len(cells) == len(CONLLU) and _ID.fullmatch(cells[0]):
            return _Shape(form or "conllu", CONLLU if form != "tabs" else _numbers(len(cells)))
        if line.startswith("#") and (len(cells) == 1 or form == "conllu"):
            continue  # a comment, or the word # between spaces: the next line says which
        if form == "conllu":
            raise FormatError(
                f"{where}: {_cut(line)} is no line of CoNLL-U; expected {len(CONLLU)} cells "
                f"between tabs: {', '.join(CONLLU)}"
            )
        found = form or ("tabs" if len(cells) > 1 else "spaces")
        if found == "spaces":
            cells = _BETWEEN.split(line.strip(" \t"))
        if len(cells) < 2:
            raise FormatError(
                f"{where}: {_cut(line)} is one cell; expected a word and its tags with tabs or "
                "spaces between them, or CoNLL-U"
            )
        return _Shape(found, NAMES.get((found, len(cells))) or _numbers(len(cells)))
    raise FormatError(f"{path} has no words; expected lines of a word and its tags")


def _numbers(cells: int) -> tuple[str, ...]:
    return ("word", *(f"column {i}" for i in range(2, cells + 1)))


def _chosen(path: Path, shape: _Shape, columns: Sequence[str] | None) -> dict[str, int]:
    """The names of the columns to read, and which cells they are."""
    names = {name: i for i, name in enumerate(shape.names)}
    if columns is None:
        usual = [name for name in PARTS_OF_SPEECH if name in names]
        if not usual:
            raise FormatError(
                f"{path} has {len(names)} columns; say which one holds the tags, by its number "
                f"from 2 to {len(names)}"
            )
        return {name: names[name] for name in usual}
    chosen = {_name(name, shape): names.get(_name(name, shape), -1) for name in columns}
    for name, i in chosen.items():
        if i < 0 or i == shape.word:
            known = ", ".join(f"{i + 1} {n}" for n, i in names.items() if i != shape.word)
            raise InputError(f"{path} has no column {name!r} of tags; its columns are {known}")
    return chosen


def _name(column: str, shape: _Shape) -> str:
    """A column's name, given that or its number."""
    if column.isdecimal() and 1 <= int(column) <= len(shape.names):
        return shape.names[int(column) - 1]
    by_case = {name.lower(): name for name in shape.names}
    return by_case.get(column.lower(), column)


def _cells(where: str, line: str, shape: _Shape) -> list[str] | None:
    """A line of a word; nothing for one that is none."""
    if shape.conllu and line.startswith("#"):
        return None
    spaces = shape.form == "spaces"
    cells = _BETWEEN.split(line.strip(" \t")) if spaces else line.split("\t")
    if cells[0] == DOCUMENT:
        return None
    if len(cells) != len(shape.names):
        raise FormatError(
            f"{where}: {_cut(line)} has {len(cells)} cells; expected {len(shape.names)} with "
            f"{'spaces' if spaces else 'tabs'} between them, as in the first line: "
            f"{', '.join(shape.names)}"
        )
    if shape.conllu:
        if not _ID.fullmatch(cells[0]):
            raise FormatError(f"{where}: the ID is {_cut(cells[0])}; expected a number")
        if not cells[0].isdecimal():
            return None  # 3-4 is a word that is cut into two, 5.1 one that is not in the text
    return cells


def _says(tags: Sequence[str]) -> bool:
    return any(tag != NOTHING for tag in tags)


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
