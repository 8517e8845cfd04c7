"""Named entities: files in CoNLL columns to examples, and predictions back to files.

One word per line, the word in the first column, its tag in the last; columns between them are
ignored, and a blank line ends a sentence. Tags may be IOB1, IOB2 or BIOES: `tag_schemes.py` reads
all of them by one rule, and examples have IOB2. A `#` begins a word like any other character.

Knows nothing about models and scores.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.tasks.lines import ColumnRow, column_blocks
from elmokit.tasks.offsets import (
    CharacterSpans,
    character_fields,
    confidence_field,
    token_spans,
    token_words,
)
from elmokit.tasks.tag_schemes import TaggedSpan, is_tag, spans_to_tags, tags_to_spans
from elmokit.tasks.task import Examples
from elmokit.text.tokenize import Token, tokenize

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("sentence",)


class Prediction(tuple[str, ...]):
    """One IOB2 tag per word, with the probability of each entity if it is known."""

    confidences: tuple[float, ...] = ()
    """Probability of each entity, in the order of the sentence; empty if they are unknown."""

    @classmethod
    def from_tags(cls, tags: Iterable[str], confidences: Iterable[float]) -> Prediction:
        """Return tags with the probabilities of their entities."""
        prediction = cls(tags)
        prediction.confidences = tuple(confidences)
        return prediction


DOCUMENT_START = "-DOCSTART-"
"""The word of a line that separates documents and belongs to no sentence."""
_COLORS = {"PER": "cyan", "ORG": "magenta", "LOC": "green", "MISC": "yellow"}
_OTHER_COLORS = ("blue", "red", "bright_cyan", "bright_magenta", "bright_green", "bright_yellow")


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, with the tags of its words if they are known."""

    words: tuple[str, ...]
    """The words of the sentence."""
    tags: tuple[str, ...] | None = None
    """One IOB2 tag per word; None if they are unknown."""
    where: str = field(default="", compare=False)
    """File and line of the first word."""
    spans: CharacterSpans | None = field(default=None, compare=False, repr=False)
    """Where the words are in the raw text; None for an example from a file."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentence, as the only text to embed."""
        return (self.words,)


def read(path: Path) -> Examples[Example]:
    """Read the sentences of a file in CoNLL columns; -DOCSTART- lines are skipped and counted."""
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    columns = 0
    for block in column_blocks(path):
        words: list[str] = []
        tags: list[str] = []
        where = ""
        for row in block:
            columns = columns or len(row.cells)
            _check_row(row, columns)
            if row.cells[0] == DOCUMENT_START:
                skipped[f"{DOCUMENT_START} lines"] += 1
                continue
            where = where or row.where
            words.append(row.cells[0])
            tags.append(row.cells[-1])
        if words:
            iob2 = spans_to_tags(tags_to_spans(tags), len(words))
            items.append(Example(tuple(words), iob2, where))
    if not items:
        raise FormatError(f"{path} has no sentences; expected a word and its tag on each line")
    return Examples(items, skipped)


def _check_row(row: ColumnRow, columns: int) -> None:
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
    if word != DOCUMENT_START and not is_tag(rest[-1]):
        raise FormatError(
            f"{where}: the last column is {rest[-1]!r}; expected a tag: O, or one of B-, I-, E-, "
            "S- and a type, such as B-PER"
        )


def parse(texts: Sequence[str]) -> Example:
    """Return an example without tags from a raw sentence."""
    (text,) = texts
    tokens = tokenize(text)
    if not tokens:
        raise InputError(f"the sentence {text!r} has no words; expected at least one")
    return from_tokens(tokens)


def from_tokens(tokens: Sequence[Token]) -> Example:
    """Return an example without tags from the words of a sentence and their positions."""
    return Example(token_words(tokens), spans=token_spans(tokens))


def write(
    file: TextIO, examples: Sequence[Example], predictions: Sequence[tuple[str, ...]]
) -> None:
    """Write columns as conlleval reads them: word, gold tag if known, predicted tag; in IOB2."""
    for example, prediction in zip(examples, predictions, strict=True):
        columns = [example.words, example.tags, prediction]
        for cells in zip(*(column for column in columns if column is not None), strict=True):
            file.write(" ".join(cells) + "\n")
        file.write("\n")


def to_record(example: Example, prediction: tuple[str, ...]) -> dict[str, Any]:
    """Return words, tags and entities as a JSON object; `end` is exclusive.

    `start_char` and `end_char` are positions in the raw text, if the example comes from one.
    """
    spans = tags_to_spans(prediction)
    confidences = prediction.confidences if isinstance(prediction, Prediction) else ()
    record: dict[str, Any] = {"words": list(example.words), "tags": list(prediction)}
    if example.tags is not None:
        record["gold"] = list(example.tags)
    record["entities"] = [
        {
            "type": span.type,
            "start": span.start,
            "end": span.end,
            "text": " ".join(example.words[span.start : span.end]),
            **character_fields(example.spans, span.start, span.end),
            **confidence_field(confidence),
        }
        for span, confidence in zip_longest(spans, confidences)
    ]
    return record | character_fields(example.spans, 0, len(example.words))


def render(example: Example, prediction: tuple[str, ...]) -> Text:
    """Return the sentence with its entities in brackets, colored by type."""
    from rich.text import Text

    text = Text()
    by_start = {span.start: span for span in tags_to_spans(prediction)}
    position = 0
    while position < len(example.words):
        span = by_start.get(position, TaggedSpan(position, position + 1, ""))
        words = " ".join(example.words[span.start : span.end])
        if text:
            text.append(" ")
        if span.type:
            text.append(f"[{words}", f"bold {_color(span.type)}")
            text.append(f" {span.type}]", _color(span.type))
        else:
            text.append(words)
        position = span.end
    return text


def _color(type_: str) -> str:
    """Return the color of a type of entity, which is always the same."""
    return _COLORS.get(type_) or _OTHER_COLORS[zlib.crc32(type_.encode()) % len(_OTHER_COLORS)]


def labels(example: Example) -> Iterable[str]:
    """Return the types of the entities in an example."""
    return {span.type for span in tags_to_spans(example.tags or ())}


def label_set(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the types of entities in a training set."""
    types = sorted({type_ for example in examples for type_ in labels(example)})
    if not types:
        raise TrainingError("the training set has no entity in it: all its tags are O")
    return {"types": types}
