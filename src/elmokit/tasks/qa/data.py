"""Questions about passages: SQuAD's JSON files, version 1.1, to examples.

A passage is cut into sentences, because that is what ELMo was taught on; its words are counted
over all of them. An answer is given by characters and becomes a span of words: where it does not
begin and end with a word, it is widened to the words that it touches. Questions of version 2.0
that have no answer are skipped and counted, as the models of 1.1 always give one.

Knows no network. What becomes of an answer is in `answers.py`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from elmokit.errors import FormatError, InputError
from elmokit.tasks.task import Examples
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import tokenize, words

ARGUMENTS = ("passage", "question")
UNANSWERABLE = "question without an answer (SQuAD 2.0)"

T = TypeVar("T")


@dataclass(frozen=True)
class Passage:
    """A text with its words; all questions about it share it."""

    text: str
    sentences: tuple[tuple[str, ...], ...]
    """Its words, sentence by sentence."""
    places: tuple[tuple[int, int], ...]
    """Where each word begins and ends in the text, over all sentences."""

    @classmethod
    def of(cls, text: str) -> Passage:
        """Cut a text into sentences and words."""
        sentences, places = [], []
        for sentence in split_sentences(text):
            tokens = tokenize(sentence.text)
            if tokens:
                sentences.append(tuple(token.text for token in tokens))
                places += [(sentence.start + t.start, sentence.start + t.end) for t in tokens]
        return cls(text, tuple(sentences), tuple(places))

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and the last word that a stretch of characters touches; None if it has none."""
        starts, ends = self._borders
        first, last = bisect_right(ends, start), bisect_left(starts, end) - 1
        return (first, last) if first <= last else None

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """Where the words from the first to the last stand in the text."""
        return self.places[first][0], self.places[last][1]

    @cached_property
    def _borders(self) -> tuple[list[int], list[int]]:
        return [start for start, _ in self.places], [end for _, end in self.places]


@dataclass(frozen=True, slots=True)
class Gold:
    """An answer that someone gave."""

    text: str
    span: tuple[int, int]
    """The first and the last of its words in the passage."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a passage."""

    id: str
    passage: Passage
    question: tuple[str, ...]
    """Its words."""
    answers: tuple[Gold, ...] | None = None
    """Any of them is right; None where they are not known."""
    where: str = field(default="", compare=False)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentences of the passage, then the question."""
        return (*self.passage.sentences, self.question)


def read(path: Path) -> Examples[Example]:
    """A file of SQuAD. Answers that are not known may be left out, or be an empty list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a JSON file of SQuAD 1.1") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8: {error}") from None
    if not text.strip():
        raise FormatError(f"{path} is empty; expected a JSON file of SQuAD 1.1")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        reason = getattr(error, "msg", "too deep")
        raise FormatError(f"{path}:{line}: no JSON ({reason}); expected SQuAD 1.1") from None
    if not isinstance(content, dict):
        raise FormatError(f"{path}: found {_kind(content)} on top; expected an object with 'data'")
    # The official files say "1.1" and "v2.0"; the layout is the same, others may be anything.
    version = str(content.get("version", "1.1"))
    if not re.fullmatch(r"v?[12](\.\d+)*", version):
        raise FormatError(f"{path}: version is {version!r}; expected SQuAD 1.1 or 2.0")
    examples: Examples[Example] = Examples([], Counter())
    first_place: dict[str, str] = {}
    for example, impossible in _questions(path, _get(content, "data", list, str(path))):
        if example.id in first_place:
            raise FormatError(
                f"{example.where}: the id is taken by {first_place[example.id]}; an id must be "
                "unique, since predictions are written by it"
            )
        first_place[example.id] = example.where.removeprefix(f"{path}: ")
        if impossible:
            examples.skipped[UNANSWERABLE] += 1
        else:
            examples.items.append(example)
    if not first_place:
        raise FormatError(f"{path} has no questions; expected data, paragraphs, qas as in SQuAD")
    if not examples.items:
        raise FormatError(f"{path}: none of {len(first_place)} questions has an answer")
    return examples


def parse(texts: Sequence[str]) -> Example:
    """A passage and a question, as they come from a command line."""
    passage, question = Passage.of(texts[0]), tuple(words(texts[1]))
    for name, found in zip(ARGUMENTS, (passage.places, question), strict=True):
        if not found:
            raise InputError(f"the {name} has no words; expected running text")
    return Example("question", passage, question)


def _questions(path: Path, articles: list[Any]) -> Iterator[tuple[Example, bool]]:
    """All questions of a file, and whether each says of itself that it has no answer."""
    for a, article in enumerate(articles, start=1):
        where = f"{path}: article {a}"
        article = _object(article, where)
        if isinstance(title := article.get("title"), str):
            where += f" ({title})"
        for p, paragraph in enumerate(_get(article, "paragraphs", list, where), start=1):
            place = f"{where}, paragraph {p}"
            passage = Passage.of(_get(_object(paragraph, place), "context", str, place))
            if not passage.places:
                raise FormatError(f"{place}: the context has no words")
            for q, question in enumerate(_get(paragraph, "qas", list, place), start=1):
                yield _question(question, passage, f"{place}, question {q}")


def _question(found: Any, passage: Passage, where: str) -> tuple[Example, bool]:
    name = _get(_object(found, where), "id", str, where)
    where += f" ({name})"
    question = tuple(words(_get(found, "question", str, where)))
    if not question:
        raise FormatError(f"{where}: the question has no words")
    impossible = found.get("is_impossible", False) is True
    answers = _get(found, "answers", list, where) if "answers" in found else []
    if impossible or not answers:
        return Example(name, passage, question, None, where), impossible
    golds = tuple(
        _gold(answer, passage, f"{where}, answer {k}") for k, answer in enumerate(answers, start=1)
    )
    return Example(name, passage, question, golds, where), False


def _gold(found: Any, passage: Passage, where: str) -> Gold:
    text = _get(_object(found, where), "text", str, where)
    start = _get(found, "answer_start", int, where)
    end = start + len(text)
    there = passage.text[max(start, 0) : max(end, 0)]
    if start < 0 or there != text:
        raise FormatError(
            f"{where}: at answer_start {start} the context has {_short(there)}; expected the "
            f"answer's text, {_short(text)}"
        )
    span = passage.span(start, end)
    if span is None:
        raise FormatError(f"{where}: the answer {_short(text)} has no words")
    return Gold(text, span)


def _get(found: dict[str, Any], key: str, kind: type[T], where: str) -> T:
    """A value that has to be there and of its kind."""
    if key not in found:
        raise FormatError(f"{where}: no {key!r}; expected it as in SQuAD 1.1")
    value = found[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FormatError(f"{where}: {key!r} is {_kind(value)}; expected {_NAMES[kind]}")
    return value


def _object(found: Any, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise FormatError(f"{where} is {_kind(found)}; expected an object")
    return found


_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _kind(value: Any) -> str:
    return _NAMES[type(value)]


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
