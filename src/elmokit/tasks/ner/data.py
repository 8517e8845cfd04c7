"""Named entities: CoNLL columns to examples, and answers back to columns.

A word a line with its tag in the last column, the word in the first, whatever there is between
them ignored; a blank line ends a sentence. Tags may be IOB1, IOB2 or BIOES: `chunks.py` reads all
of them by one rule, and inside they are IOB2. A `#` begins a word like any other.

Knows nothing about models and scores.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.tasks.chunks import Span, is_tag, spans, tags
from elmokit.tasks.columns import Row, blocks
from elmokit.tasks.task import Examples
from elmokit.text import tokenize

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("sentence",)

Prediction = tuple[str, ...]
"""A tag a word, IOB2."""

DOCUMENT = "-DOCSTART-"
_COLORS = {"PER": "cyan", "ORG": "magenta", "LOC": "green", "MISC": "yellow"}
_OTHER_COLORS = ("blue", "red", "bright_cyan", "bright_magenta", "bright_green", "bright_yellow")


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, and the tags (IOB2) of its words if they are known."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    where: str = field(default="", compare=False)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentence."""
        return (self.words,)


def read(path: Path) -> Examples[Example]:
    """The sentences of a file in CoNLL columns; lines of -DOCSTART- are counted and skipped."""
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    columns = 0
    for block in blocks(path):
        words: list[str] = []
        found: list[str] = []
        where = ""
        for row in block:
            columns = columns or len(row.cells)
            _check(row, columns)
            if row.cells[0] == DOCUMENT:
                skipped[f"{DOCUMENT} lines"] += 1
                continue
            where = where or row.where
            words.append(row.cells[0])
            found.append(row.cells[-1])
        if words:
            items.append(Example(tuple(words), tags(spans(found), len(words)), where))
    if not items:
        raise FormatError(f"{path} has no sentences; expected a word and its tag a line")
    return Examples(items, skipped)


def _check(row: Row, columns: int) -> None:
    where, (word, *rest) = row
    if not word:
        raise FormatError(f"{where}: the line begins with a space; expected a word there")
    if not rest:
        raise FormatError(f"{where}: found only {word!r}; expected a word and, last, its tag")
    if len(rest) + 1 != columns:
        raise FormatError(
            f"{where}: found {len(rest) + 1} columns, but {columns} before; expected the same "
            "number in all lines, separated by spaces or tabs"
        )
    if word != DOCUMENT and not is_tag(rest[-1]):
        raise FormatError(
            f"{where}: the last column is {rest[-1]!r}; expected a tag: O, or one of B-, I-, E-, "
            "S- and a type, such as B-PER"
        )


def parse(texts: Sequence[str]) -> Example:
    """A raw sentence."""
    (text,) = texts
    words = tuple(tokenize.words(text))
    if not words:
        raise InputError(f"the sentence {text!r} has no words; expected at least one")
    return Example(words)


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """Columns as conlleval reads them: word, gold tag (if there is one), predicted tag; IOB2."""
    for example, prediction in zip(examples, predictions, strict=True):
        columns = [example.words, example.tags, prediction]
        for cells in zip(*(column for column in columns if column is not None), strict=True):
            file.write(" ".join(cells) + "\n")
        file.write("\n")


def record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """The words, their tags and the entities; `end` is exclusive."""
    made: dict[str, Any] = {"words": list(example.words), "tags": list(prediction)}
    if example.tags is not None:
        made["gold"] = list(example.tags)
    made["entities"] = [
        {
            "type": span.type,
            "start": span.start,
            "end": span.end,
            "text": " ".join(example.words[span.start : span.end]),
        }
        for span in spans(prediction)
    ]
    return made


def show(example: Example, prediction: Prediction) -> Text:
    """The sentence with its entities colored, each with its type."""
    from rich.text import Text

    text = Text()
    by_start = {span.start: span for span in spans(prediction)}
    place = 0
    while place < len(example.words):
        span = by_start.get(place, Span(place, place + 1, ""))
        words = " ".join(example.words[span.start : span.end])
        if text:
            text.append(" ")
        if span.type:
            text.append(f"[{words}", f"bold {color(span.type)}")
            text.append(f" {span.type}]", color(span.type))
        else:
            text.append(words)
        place = span.end
    return text


def color(type_: str) -> str:
    """The same color for a type everywhere and always."""
    return _COLORS.get(type_) or _OTHER_COLORS[zlib.crc32(type_.encode()) % len(_OTHER_COLORS)]


def labels(example: Example) -> Iterable[str]:
    """The types of the entities in it."""
    return {span.type for span in spans(example.tags or ())}


def facts(examples: Sequence[Example]) -> dict[str, Any]:
    """The types of entities there are."""
    types = sorted({type_ for example in examples for type_ in labels(example)})
    if not types:
        raise TrainingError("the training set has no entity in it: all its tags are O")
    return {"types": types}
