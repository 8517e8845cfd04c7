"""Semantic roles: who does what to whom; files to examples, and answers back to files.

An example is a sentence with one of its predicates. Two kinds of files, told apart by what is in
them:

- JSON lines, a sentence each: `{"words": […], "preds": [{"i": 3, "roleset": "get.01", "tags":
  ["B-ARG0", …]}]}`; `i` is the place of the predicate, `tags` are BIO, one a word. Without `tags` a
  predicate is to be answered; without `preds` the predicates are to be found.
- CoNLL-2012 columns: the word in column 4, a column a predicate from column 12 on, the last column
  coreference. `(ARG0* * *)` is a role of three words; the predicate is where `(V*` is.

A sentence without predicates is one example without any, so that what is written has the lines of
what was read. Knows nothing about models and scores.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.tasks.chunks import Span, is_tag, spans, tags
from elmokit.tasks.columns import Row, blocks
from elmokit.tasks.lines import placed
from elmokit.tasks.task import Examples
from elmokit.text.tokenize import tokenize

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("sentence",)
VERB = "V"

_FIXED = 11
"""Columns of CoNLL-2012 before those of the predicates."""
_CELL = re.compile(r"((?:\([^()*]+)*)\*(\)*)")
_MARKED = re.compile(r"\[(\w[^\[\]]*)\]")
_COLORS = {"ARG0": "cyan", "ARG1": "green", "ARG2": "magenta", "ARG3": "blue", "ARG4": "red"}
_OTHER_COLORS = ("yellow", "bright_yellow", "bright_red", "bright_blue", "bright_magenta")


class Frame(NamedTuple):
    """A predicate's place and the tags (BIO) of all words."""

    predicate: int
    tags: tuple[str, ...]


Prediction = tuple[Frame, ...]
"""One frame if the example names its predicate, else one for each predicate of the sentence."""


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence and one of its predicates, with the roles (BIO) if they are known."""

    words: tuple[str, ...]
    predicate: int | None = None
    """Its place; None asks for all of `predicates`."""
    tags: tuple[str, ...] | None = None
    predicates: tuple[int, ...] | None = None
    """The places of all predicates of the sentence; None if they are to be found."""
    roleset: str = ""
    where: str = field(default="", compare=False)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentence."""
        return (self.words,)


def read(path: Path) -> Examples[Example]:
    """The predicates of a file of JSON lines or in CoNLL-2012 columns."""
    first = next((line for _, line in placed(path)), None)
    if first is None:
        raise FormatError(f"{path} is empty; expected JSON lines or CoNLL-2012 columns")
    if first.startswith("{"):
        read = Examples([example for line in placed(path) for example in _of_json(*line)])
    else:
        read = _read_columns(path)
    if not read.items:
        raise FormatError(f"{path} has no sentences; expected JSON lines or CoNLL-2012 columns")
    return read


# -- JSON lines ------------------------------------------------------------------------------------


def _of_json(where: str, line: str) -> Iterator[Example]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise FormatError(f"{where}: not JSON ({error}); expected an object a line") from None
    words = found.get("words") if isinstance(found, dict) else None
    if not (isinstance(words, list) and words and all(isinstance(w, str) and w for w in words)):
        raise FormatError(f"{where}: expected an object with 'words', a list of words, not empty")
    if "preds" not in found:
        yield Example(tuple(words), where=where)
        return
    preds = found["preds"]
    if not (isinstance(preds, list) and all(isinstance(pred, dict) for pred in preds)):
        raise FormatError(f"{where}: 'preds' is no list of objects with 'i' and 'tags'")
    places = []
    for pred in preds:
        place = pred.get("i")
        if type(place) is not int or not 0 <= place < len(words):
            raise FormatError(
                f"{where}: 'i' of a predicate is {place!r}; expected the place of one of "
                f"{len(words)} words, counted from 0"
            )
        places.append(place)
    for pred in preds:
        roles = pred.get("tags")
        yield Example(
            tuple(words),
            pred["i"],
            None if roles is None else _checked(where, roles, len(words)),
            tuple(places),
            str(pred.get("roleset", "")),
            where,
        )
    if not preds:
        yield Example(tuple(words), predicates=(), where=where)


def _checked(where: str, roles: object, length: int) -> tuple[str, ...]:
    """Tags as they should be: IOB2 without a fault."""
    if not isinstance(roles, list) or len(roles) != length:
        found = f"{len(roles)}" if isinstance(roles, list) else repr(roles)
        raise FormatError(f"{where}: found {found} tags; expected a list of {length}, one a word")
    for tag in roles:
        if not isinstance(tag, str) or not is_tag(tag) or tag[0] in "ES":
            raise FormatError(f"{where}: found the tag {tag!r}; expected O, or B- or I- and a role")
    return tags(spans(roles), length)


# -- CoNLL-2012 ------------------------------------------------------------------------------------


def _read_columns(path: Path) -> Examples[Example]:
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    for block in blocks(path):
        rows = [row for row in block if row.cells[0] not in ("#begin", "#end")]
        if not rows:
            continue
        width = len(rows[0].cells)
        for row in rows:
            if len(row.cells) != width or width <= _FIXED:
                raise FormatError(
                    f"{row.where}: found {len(row.cells)} columns; expected JSON lines, or the "
                    f"{_FIXED + 1} or more columns of CoNLL-2012, as many in all lines of a "
                    f"sentence (here {width})"
                )
        items += _of_columns(rows, skipped)
    return Examples(items, skipped)


def _of_columns(rows: list[Row], skipped: Counter[str]) -> Iterator[Example]:
    words = tuple(row.cells[3] for row in rows)
    frames = []
    for column in range(_FIXED, len(rows[0].cells) - 1):
        roles, nested = _brackets([(row.where, row.cells[column]) for row in rows])
        place = next((span.start for span in roles if span.type == VERB), None)
        if nested:
            skipped["predicates with roles inside roles"] += 1
        elif place is None:
            skipped["predicates without a (V*) bracket"] += 1
        else:
            frames.append(Frame(place, tags(roles, len(words))))
    places = tuple(frame.predicate for frame in frames)
    where = rows[0].where
    for place, roles_of in frames:
        lemma, sense = rows[place].cells[6:8]
        roleset = "" if lemma == "-" else f"{lemma}.{sense}"
        yield Example(words, place, roles_of, places, roleset, where)
    if not frames:
        yield Example(words, predicates=(), where=where)


def _brackets(cells: list[tuple[str, str]]) -> tuple[list[Span], bool]:
    """The spans of a column, and whether there are some inside others."""
    found: list[Span] = []
    opened: list[tuple[str, int, str]] = []
    nested = False
    for place, (where, cell) in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise FormatError(
                f"{where}: found {cell!r} in the column of a predicate; expected *, (ROLE*, *) or "
                "(ROLE*)"
            )
        opened += [(where, place, role) for role in match[1].split("(")[1:]]
        nested |= len(opened) > 1
        for _ in match[2]:
            if not opened:
                raise FormatError(f"{where}: {cell!r} closes a bracket that was not opened")
            _, start, role = opened.pop()
            found.append(Span(start, place + 1, role))
    if opened:
        where, _, role = opened[-1]
        raise FormatError(f"{where}: the bracket ({role}* is not closed in its sentence")
    return sorted(found), nested


# -- raw text --------------------------------------------------------------------------------------


def parse(texts: Sequence[str]) -> Example:
    """A raw sentence; predicates in [brackets] are asked for, else those that the model finds."""
    (text,) = texts
    marks: list[int] = []
    plain = ""
    end = 0
    for match in _MARKED.finditer(text):
        plain += text[end : match.start()]
        marks.append(len(plain))
        plain += match[1]
        end = match.end()
    plain += text[end:]
    tokens = tokenize(plain)
    if not tokens:
        raise InputError(f"the sentence {text!r} has no words; expected at least one")
    words = tuple(token.text for token in tokens)
    if not marks:
        return Example(words)
    places = (next(k for k, token in enumerate(tokens) if token.end > mark) for mark in marks)
    return Example(words, predicates=tuple(dict.fromkeys(places)))


# -- answers ---------------------------------------------------------------------------------------


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """JSON lines as `read` takes them, a sentence each: the predicates of one together."""
    pairs = zip(examples, predictions, strict=True)
    for _, group in groupby(pairs, key=lambda pair: (pair[0].where or id(pair[0]), pair[0].words)):
        sentence = list(group)
        preds = [pred for pair in sentence for pred in _preds(*pair)]
        file.write(json.dumps({"words": sentence[0][0].words, "preds": preds}, ensure_ascii=False))
        file.write("\n")


def _preds(example: Example, prediction: Prediction) -> list[dict[str, Any]]:
    named = {"roleset": example.roleset} if example.roleset else {}
    return [{"i": frame.predicate, **named, "tags": list(frame.tags)} for frame in prediction]


def record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """The words, and for each predicate its tags and its roles; `end` is exclusive."""
    preds = _preds(example, prediction)
    for pred, frame in zip(preds, prediction, strict=True):
        pred["word"] = example.words[frame.predicate]
        pred["roles"] = [
            {
                "role": span.type,
                "start": span.start,
                "end": span.end,
                "text": " ".join(example.words[span.start : span.end]),
            }
            for span in spans(frame.tags)
            if span.type != VERB
        ]
    return {"words": list(example.words), "preds": preds}


def show(example: Example, prediction: Prediction) -> Text:
    """A line a predicate: the sentence with the roles colored, each with its name."""
    from rich.text import Text

    if not prediction:
        return Text(" ".join(example.words) + "  (no predicate)")
    return Text("\n").join(_line(example.words, frame) for frame in prediction)


def _line(words: tuple[str, ...], frame: Frame) -> Text:
    from rich.text import Text

    by_start = {span.start: span for span in spans(frame.tags)}
    by_start.setdefault(frame.predicate, Span(frame.predicate, frame.predicate + 1, VERB))
    line = Text()
    place = 0
    while place < len(words):
        span = by_start.get(place, Span(place, place + 1, ""))
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
        place = span.end
    return line


def _color(role: str) -> str:
    """A role, its reference and its continuation have one color, everywhere and always."""
    role = re.sub(r"^[CR]-", "", role)
    return _COLORS.get(role) or _OTHER_COLORS[zlib.crc32(role.encode()) % len(_OTHER_COLORS)]


# -- what a training set teaches -------------------------------------------------------------------


def labels(example: Example) -> Iterable[str]:
    """The roles in it."""
    return {span.type for span in spans(example.tags or ())}


def facts(examples: Sequence[Example]) -> dict[str, Any]:
    """The roles there are."""
    roles = sorted({role for example in examples for role in labels(example)})
    if not roles:
        raise TrainingError("the training set has no predicate with roles in it")
    return {"roles": roles}
