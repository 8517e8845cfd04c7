"""Semantic roles: files to examples, and predictions back to files.

An example is a sentence with one of its predicates. Two formats are told apart by their content:

- JSON lines, one sentence per line: `{"words": […], "preds": [{"i": 3, "roleset": "get.01", "tags":
  ["B-ARG0", …]}]}`; `i` is the position of the predicate, `tags` are BIO, one per word. A predicate
  without `tags` is to be predicted; without `preds` the predicates are to be detected.
- CoNLL-2012 columns: the word in column 4, one column per predicate from column 12 on, the last
  column coreference. `(ARG0* * *)` is a role of three words; the predicate is where `(V*` is.

A sentence without predicates is one example without any, so that a written file has the lines of
the file that was read. Knows nothing about models and scores.
"""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.json_text import parse_json
from elmokit.tasks.lines import ColumnRow, column_blocks, nonblank_lines
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
VERB = "V"
"""The role of the predicate itself."""

_FIXED_COLUMNS = 11
"""Columns of CoNLL-2012 before those of the predicates."""
_CELL = re.compile(r"((?:\([^()*]+)*)\*(\)*)")
_MARKED = re.compile(r"\[(\w[^\[\]]*)\]")
_COLORS = {"ARG0": "cyan", "ARG1": "green", "ARG2": "magenta", "ARG3": "blue", "ARG4": "red"}
_OTHER_COLORS = ("yellow", "bright_yellow", "bright_red", "bright_blue", "bright_magenta")


@dataclass(frozen=True, slots=True)
class Frame:
    """A predicate and its roles."""

    predicate: int
    """Position of the predicate."""
    tags: tuple[str, ...]
    """BIO tags of all words of the sentence."""
    confidences: tuple[float, ...] = field(default=(), compare=False)
    """Probability of each span of the tags, in order; empty if they are unknown."""


Prediction = tuple[Frame, ...]
"""One frame if the example names its predicate, else one per predicate of the sentence."""


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence and one of its predicates, with the roles if they are known."""

    words: tuple[str, ...]
    """The words of the sentence."""
    predicate: int | None = None
    """Position of the predicate; None for all of `predicates`."""
    tags: tuple[str, ...] | None = None
    """BIO tags of the roles, one per word; None if they are unknown."""
    predicates: tuple[int, ...] | None = None
    """Positions of all predicates of the sentence; None if they are to be detected."""
    roleset: str = ""
    """The roleset of the predicate, such as `get.01`; empty if it is unknown."""
    where: str = field(default="", compare=False)
    """File and line of the sentence."""
    spans: CharacterSpans | None = field(default=None, compare=False, repr=False)
    """Where the words are in the raw text; None for an example from a file."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentence, as the only text to embed."""
        return (self.words,)


def read(path: Path) -> Examples[Example]:
    """Read the predicates of a file of JSON lines or in CoNLL-2012 columns."""
    first = next((line for _, line in nonblank_lines(path)), None)
    if first is None:
        raise FormatError(f"{path} is empty; expected JSON lines or CoNLL-2012 columns")
    if first.startswith("{"):
        lines = nonblank_lines(path)
        examples = Examples([example for line in lines for example in _from_json(*line)])
    else:
        examples = _read_columns(path)
    if not examples.items:
        raise FormatError(f"{path} has no sentences; expected JSON lines or CoNLL-2012 columns")
    return examples


# -- JSON lines ------------------------------------------------------------------------------------


def _from_json(where: str, line: str) -> Iterator[Example]:
    try:
        sentence = parse_json(line)
    except ValueError as error:
        raise FormatError(f"{where}: not JSON ({error}); expected one object per line") from None
    listed = sentence.get("words") if isinstance(sentence, dict) else None
    if not (isinstance(listed, list) and listed and all(isinstance(w, str) and w for w in listed)):
        raise FormatError(f"{where}: expected an object with 'words', a non-empty list of words")
    words = tuple(listed)  # once, since all predicates share them
    if "preds" not in sentence:
        yield Example(words, where=where)
        return
    preds = sentence["preds"]
    if not (isinstance(preds, list) and all(isinstance(pred, dict) for pred in preds)):
        raise FormatError(f"{where}: 'preds' is not a list of objects with 'i' and 'tags'")
    found = []
    for pred in preds:
        position = pred.get("i")
        if type(position) is not int or not 0 <= position < len(words):
            raise FormatError(
                f"{where}: 'i' of a predicate is {position!r}; expected the position of one of "
                f"{len(words)} words, counted from 0"
            )
        found.append(position)
    positions = tuple(found)
    for pred in preds:
        roles = pred.get("tags")
        yield Example(
            words,
            pred["i"],
            None if roles is None else _check_tags(where, roles, len(words)),
            positions,
            str(pred.get("roleset", "")),
            where,
        )
    if not preds:
        yield Example(words, predicates=(), where=where)


def _check_tags(where: str, tags: object, length: int) -> tuple[str, ...]:
    """Return tags as well-formed IOB2; raise an error if they are no tags."""
    if not isinstance(tags, list) or len(tags) != length:
        found = f"{len(tags)}" if isinstance(tags, list) else repr(tags)
        raise FormatError(f"{where}: found {found} tags; expected a list of {length}, one per word")
    for tag in tags:
        if not isinstance(tag, str) or not is_tag(tag) or tag[0] in "ES":
            raise FormatError(f"{where}: found the tag {tag!r}; expected O, or B- or I- and a role")
    return spans_to_tags(tags_to_spans(tags), length)


# -- CoNLL-2012 ------------------------------------------------------------------------------------


def _read_columns(path: Path) -> Examples[Example]:
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    for block in column_blocks(path):
        rows = [row for row in block if row.cells[0] not in ("#begin", "#end")]
        if not rows:
            continue
        width = len(rows[0].cells)
        for row in rows:
            if len(row.cells) != width or width <= _FIXED_COLUMNS:
                raise FormatError(
                    f"{row.where}: found {len(row.cells)} columns; expected JSON lines, or the "
                    f"{_FIXED_COLUMNS + 1} or more columns of CoNLL-2012, as many in all lines of "
                    f"a sentence (here {width})"
                )
        items += _from_columns(rows, skipped)
    return Examples(items, skipped)


def _from_columns(rows: list[ColumnRow], skipped: Counter[str]) -> Iterator[Example]:
    words = tuple(row.cells[3] for row in rows)
    frames = []
    for column in range(_FIXED_COLUMNS, len(rows[0].cells) - 1):
        roles, nested = _read_brackets([(row.where, row.cells[column]) for row in rows])
        position = next((span.start for span in roles if span.type == VERB), None)
        if nested:
            skipped["predicates with roles inside roles"] += 1
        elif position is None:
            skipped["predicates without a (V*) bracket"] += 1
        else:
            frames.append(Frame(position, spans_to_tags(roles, len(words))))
    positions = tuple(frame.predicate for frame in frames)
    where = rows[0].where
    for frame in frames:
        position, tags = frame.predicate, frame.tags
        lemma, sense = rows[position].cells[6:8]
        roleset = "" if lemma == "-" else f"{lemma}.{sense}"
        yield Example(words, position, tags, positions, roleset, where)
    if not frames:
        yield Example(words, predicates=(), where=where)


def _read_brackets(cells: list[tuple[str, str]]) -> tuple[list[TaggedSpan], bool]:
    """Return the spans of a column, and whether some are inside others."""
    spans: list[TaggedSpan] = []
    opened: list[tuple[str, int, str]] = []
    nested = False
    for position, (where, cell) in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise FormatError(
                f"{where}: found {cell!r} in the column of a predicate; expected *, (ROLE*, *) or "
                "(ROLE*)"
            )
        opened += [(where, position, role) for role in match[1].split("(")[1:]]
        nested |= len(opened) > 1
        for _ in match[2]:
            if not opened:
                raise FormatError(f"{where}: {cell!r} closes a bracket that was not opened")
            _, start, role = opened.pop()
            spans.append(TaggedSpan(start, position + 1, role))
    if opened:
        where, _, role = opened[-1]
        raise FormatError(f"{where}: the bracket ({role}* is not closed in its sentence")
    return sorted(spans), nested


# -- raw text --------------------------------------------------------------------------------------


def parse(texts: Sequence[str]) -> Example:
    """Return an example from a raw sentence.

    Its predicates are the words in [brackets], or else those that the model detects.
    """
    (text,) = texts
    marks: list[int] = []
    kept: list[int] = []  # positions in the raw text of the characters that are not marks
    end = 0
    for match in _MARKED.finditer(text):
        kept += range(end, match.start())
        marks.append(len(kept))
        kept += range(match.start(1), match.end(1))
        end = match.end()
    kept += range(end, len(text))
    tokens = tokenize("".join(text[position] for position in kept))
    if not tokens:
        raise InputError(f"the sentence {text!r} has no words; expected at least one")
    example = replace(
        from_tokens(tokens),
        spans=tuple((kept[token.start], kept[token.end - 1] + 1) for token in tokens),
    )
    if not marks:
        return example
    ends = [token.end for token in tokens]
    positions = (bisect_right(ends, mark) for mark in marks)
    return replace(example, predicates=tuple(dict.fromkeys(positions)))


def from_tokens(tokens: Sequence[Token]) -> Example:
    """Return an example from the words of a sentence and their positions.

    Its predicates are those that the model detects; brackets mark nothing.
    """
    return Example(token_words(tokens), spans=token_spans(tokens))


# -- predictions -----------------------------------------------------------------------------------


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """Write JSON lines as `read` takes them, one sentence per line with all its predicates."""
    pairs = zip(examples, predictions, strict=True)
    for _, group in groupby(pairs, key=lambda pair: (pair[0].where or id(pair[0]), pair[0].words)):
        sentence = list(group)
        preds = [pred for pair in sentence for pred in _preds(*pair)]
        file.write(json.dumps({"words": sentence[0][0].words, "preds": preds}, ensure_ascii=False))
        file.write("\n")


def _preds(example: Example, prediction: Prediction) -> list[dict[str, Any]]:
    named = {"roleset": example.roleset} if example.roleset else {}
    return [{"i": frame.predicate, **named, "tags": list(frame.tags)} for frame in prediction]


def to_record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """Return words, and tags and roles of each predicate, as a JSON object; `end` is exclusive.

    `start_char` and `end_char` are positions in the raw text, if the example comes from one.
    """
    preds = _preds(example, prediction)
    for pred, frame in zip(preds, prediction, strict=True):
        pred["word"] = example.words[frame.predicate]
        pred |= character_fields(example.spans, frame.predicate, frame.predicate + 1)
        pred["roles"] = [
            {
                "role": span.type,
                "start": span.start,
                "end": span.end,
                "text": " ".join(example.words[span.start : span.end]),
                **character_fields(example.spans, span.start, span.end),
                **confidence_field(confidence),
            }
            for span, confidence in zip_longest(tags_to_spans(frame.tags), frame.confidences)
            if span.type != VERB
        ]
    sentence = character_fields(example.spans, 0, len(example.words))
    return {"words": list(example.words), "preds": preds, **sentence}


def render(example: Example, prediction: Prediction) -> Text:
    """Return one line per predicate: the sentence with its roles in brackets, colored."""
    from rich.text import Text

    if not prediction:
        return Text(" ".join(example.words) + "  (no predicate)")
    return Text("\n").join(_render_frame(example.words, frame) for frame in prediction)


def _render_frame(words: tuple[str, ...], frame: Frame) -> Text:
    from rich.text import Text

    by_start = {span.start: span for span in tags_to_spans(frame.tags)}
    by_start.setdefault(frame.predicate, TaggedSpan(frame.predicate, frame.predicate + 1, VERB))
    line = Text()
    position = 0
    while position < len(words):
        span = by_start.get(position, TaggedSpan(position, position + 1, ""))
        text = " ".join(words[span.start : span.end])
        if line:
            line.append(" ")
        if not span.type:
            line.append(text)
        elif span.type == VERB:
            line.append(f"[{text}]", "bold reverse")
        else:
            line.append(f"[{span.type} ", _color(span.type))
            line.append(f"{text}]", f"bold {_color(span.type)}")
        position = span.end
    return line


def _color(role: str) -> str:
    """Return the color of a role, the same as of its reference (R-) and continuation (C-)."""
    role = re.sub(r"^[CR]-", "", role)
    return _COLORS.get(role) or _OTHER_COLORS[zlib.crc32(role.encode()) % len(_OTHER_COLORS)]


# -- labels ----------------------------------------------------------------------------------------


def labels(example: Example) -> Iterable[str]:
    """Return the roles in an example."""
    return {span.type for span in tags_to_spans(example.tags or ())}


def label_set(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the roles in a training set."""
    roles = sorted({role for example in examples for role in labels(example)})
    if not roles:
        raise TrainingError("the training set has no predicate with roles in it")
    return {"roles": roles}
