"""Readers of tagged sentences: one word per line, blank lines between sentences.

Three formats are read: a word and its tags separated by tabs; CoNLL-U, the format of Universal
Dependencies; and columns separated by spaces, as in the CoNLL shared tasks. Knows nothing about
models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from elmokit.errors import FormatError, InputError
from elmokit.text.files import read_lines

TagFormat = Literal["tabs", "conllu", "spaces"]

CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
NO_TAG = "_"
"""What CoNLL-U has where a word has no tag."""
DOCUMENT_START = "-DOCSTART-"
"""First cell of the line that begins a document in CoNLL-2003; it is not a word."""
COLUMN_NAMES: dict[tuple[str, int], tuple[str, ...]] = {
    ("tabs", 2): ("word", "tag"),
    ("tabs", 3): ("word", "UPOS", "XPOS"),
    ("tabs", 4): ("word", "pos", "chunk", "ner"),
    ("spaces", 2): ("word", "tag"),
    ("spaces", 3): ("word", "pos", "chunk"),
    ("spaces", 4): ("word", "pos", "chunk", "ner"),
}
"""Names of the columns by format and number of columns; other columns are named by number."""
PARTS_OF_SPEECH = ("UPOS", "XPOS", "pos", "tag")
"""Columns that are read by default, where a file has them."""

_ID = re.compile(r"\d+(?:[-.]\d+)?")
_BETWEEN = re.compile(r"[ \t]+")  # a no-break space may be a word


@dataclass(frozen=True)
class TaggedText:
    """Sentences with one or more columns of tags."""

    sentences: list[list[str]]
    """The words of each sentence."""
    tags: dict[str, list[str]]
    """The tags of each column: one tag per word, all sentences in one list."""

    @property
    def words(self) -> list[str]:
        """The words of all sentences in one list."""
        return [word for sentence in self.sentences for word in sentence]

    def first(self, words: int) -> TaggedText:
        """Return the first sentences that together have at least this many words."""
        chosen: list[list[str]] = []
        count = 0
        for sentence in self.sentences:
            if count >= words:
                break
            chosen.append(sentence)
            count += len(sentence)
        return TaggedText(chosen, {name: tags[:count] for name, tags in self.tags.items()})


def read_tagged(
    path: str | Path, columns: Sequence[str] | None = None, format: str | None = None
) -> TaggedText:
    """Read a file of tagged sentences.

    Args:
        path: File of UTF-8 text, plain or compressed.
        columns: Columns to read, by name or by number from 1; the parts of speech by default.
            A column of CoNLL-U without any tag counts as missing.
        format: `"tabs"`, `"conllu"` or `"spaces"`; detected from the first lines by default.
    """
    path = Path(path).expanduser()
    if format is not None and format not in get_args(TagFormat):
        raise InputError(f"format is {format!r}; expected one of {', '.join(get_args(TagFormat))}")
    layout = _detect_layout(path, format)
    chosen = _choose_columns(path, layout, columns)
    reader = _SentenceReader({name: [] for name in chosen})
    for where, line in read_lines(path):
        if not line.strip(" \t"):
            reader.end_sentence()
        elif (cells := _split_cells(where, line, layout)) is not None:
            reader.add(where, cells[layout.word], {name: cells[i] for name, i in chosen.items()})
    reader.end_sentence()
    if not reader.sentences:
        raise FormatError(f"{path} has no words; expected one word and its tags per line")
    tags = {n: each for n, each in reader.tags.items() if not layout.is_conllu or _has_tags(each)}
    if missing := [name for name in columns or () if _column_name(name, layout) not in tags]:
        raise FormatError(f"{path} has no tags in column {', '.join(missing)}, only {NO_TAG}")
    if not tags:
        raise FormatError(f"{path} has no tags in the columns UPOS and XPOS, only {NO_TAG}")
    return TaggedText(reader.sentences, tags)


class _Layout(NamedTuple):
    """The format of a file and the names of its columns."""

    format: str
    names: tuple[str, ...]

    @property
    def is_conllu(self) -> bool:
        return self.format == "conllu"

    @property
    def word(self) -> int:
        """Index of the cell that holds the word."""
        return 1 if self.is_conllu else 0


@dataclass
class _SentenceReader:
    """Collects words and tags into sentences."""

    tags: dict[str, list[str]]
    sentences: list[list[str]] = field(default_factory=list)
    _sentence: list[str] = field(default_factory=list)

    def add(self, where: str, word: str, tags: Mapping[str, str]) -> None:
        if not word.strip() or not all(tags.values()):
            raise FormatError(f"{where}: empty cell; expected a word and {', '.join(tags)}")
        self._sentence.append(word)
        for name, tag in tags.items():
            self.tags[name].append(tag)

    def end_sentence(self) -> None:
        if self._sentence:
            self.sentences.append(self._sentence)
            self._sentence = []


def _detect_layout(path: Path, format: str | None) -> _Layout:
    """Return the layout of a file, from its first line that is neither blank nor a comment."""
    for where, line in islice(read_lines(path), 10_000):
        if not line.strip() or line.startswith(DOCUMENT_START):
            continue
        cells = line.split("\t")
        if format != "spaces" and len(cells) == len(CONLLU_COLUMNS) and _ID.fullmatch(cells[0]):
            names = CONLLU_COLUMNS if format != "tabs" else _numbered_names(len(cells))
            return _Layout(format or "conllu", names)
        if line.startswith("#") and (len(cells) == 1 or format == "conllu"):
            continue  # a comment, or the word # between spaces: the next line decides
        if format == "conllu":
            raise FormatError(
                f"{where}: {_shorten(line)} is not a line of CoNLL-U; expected "
                f"{len(CONLLU_COLUMNS)} cells separated by tabs: {', '.join(CONLLU_COLUMNS)}"
            )
        detected = format or ("tabs" if len(cells) > 1 else "spaces")
        if detected == "spaces":
            cells = _BETWEEN.split(line.strip(" \t"))
        if len(cells) < 2:
            raise FormatError(
                f"{where}: {_shorten(line)} is a single cell; expected a word and its tags, "
                "separated by tabs or spaces, or CoNLL-U"
            )
        names = COLUMN_NAMES.get((detected, len(cells))) or _numbered_names(len(cells))
        return _Layout(detected, names)
    raise FormatError(f"{path} has no words; expected one word and its tags per line")


def _numbered_names(cells: int) -> tuple[str, ...]:
    return ("word", *(f"column {i}" for i in range(2, cells + 1)))


def _choose_columns(path: Path, layout: _Layout, columns: Sequence[str] | None) -> dict[str, int]:
    """Return the names of the columns to read and their indices."""
    names = {name: i for i, name in enumerate(layout.names)}
    if columns is None:
        usual = [name for name in PARTS_OF_SPEECH if name in names]
        if not usual:
            raise FormatError(
                f"{path} has {len(names)} columns; name the column that holds the tags by its "
                f"number, from 2 to {len(names)}"
            )
        return {name: names[name] for name in usual}
    chosen = {
        _column_name(name, layout): names.get(_column_name(name, layout), -1) for name in columns
    }
    for name, i in chosen.items():
        if i < 0 or i == layout.word:
            known = ", ".join(f"{i + 1} {n}" for n, i in names.items() if i != layout.word)
            raise InputError(f"{path} has no column {name!r} of tags; its columns are {known}")
    return chosen


def _column_name(column: str, layout: _Layout) -> str:
    """Return the name of a column that is given by its name in any case, or by its number."""
    if column.isdecimal() and 1 <= int(column) <= len(layout.names):
        return layout.names[int(column) - 1]
    by_case = {name.lower(): name for name in layout.names}
    return by_case.get(column.lower(), column)


def _split_cells(where: str, line: str, layout: _Layout) -> list[str] | None:
    """Return the cells of a line, or None if the line does not hold a word."""
    if layout.is_conllu and line.startswith("#"):
        return None
    spaces = layout.format == "spaces"
    cells = _BETWEEN.split(line.strip(" \t")) if spaces else line.split("\t")
    if cells[0] == DOCUMENT_START:
        return None
    if len(cells) != len(layout.names):
        raise FormatError(
            f"{where}: {_shorten(line)} has {len(cells)} cells; expected {len(layout.names)}, "
            f"separated by {'spaces' if spaces else 'tabs'}, as in the first line: "
            f"{', '.join(layout.names)}"
        )
    if layout.is_conllu:
        if not _ID.fullmatch(cells[0]):
            raise FormatError(f"{where}: the ID is {_shorten(cells[0])}; expected a number")
        if not cells[0].isdecimal():
            return None  # 3-4 is a word that is split into two, 5.1 one that is not in the text
    return cells


def _has_tags(tags: Sequence[str]) -> bool:
    return any(tag != NO_TAG for tag in tags)


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
