"""Questions about passages: SQuAD's JSON files, version 1.1, to examples.

A passage is split into sentences, because ELMo was trained on sentences; its words are numbered
over all of them. An answer is given in characters and becomes a span of words: where it does not
begin and end with a word, it is widened to the words that it touches. Questions of version 2.0
that have no answer are skipped and counted, since models for 1.1 always predict one.

Knows no network. Predictions are in `answers.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from elmokit.errors import FormatError, InputError
from elmokit.json_text import parse_json
from elmokit.tasks.task import Examples
from elmokit.text.files import TextFile
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import split_words, tokenize

ARGUMENTS = ("passage", "question")
UNANSWERABLE = "question without an answer (SQuAD 2.0)"
"""Reason for which questions are skipped."""

LONGEST_TITLE = 100
"""Characters of a title that are part of the place of a question."""

T = TypeVar("T")


@dataclass(frozen=True)
class Passage:
    """A text with its words, shared by all questions about it."""

    text: str
    """The raw text."""
    sentences: tuple[tuple[str, ...], ...]
    """The words of each sentence."""
    places: tuple[tuple[int, int], ...]
    """Start and end of each word in the text, in characters, over all sentences."""

    @classmethod
    def from_text(cls, text: str) -> Passage:
        """Split a text into sentences and words."""
        sentences, places = [], []
        for sentence in split_sentences(text):
            tokens = tokenize(sentence.text)
            if tokens:
                sentences.append(tuple(token.text for token in tokens))
                places += [(sentence.start + t.start, sentence.start + t.end) for t in tokens]
        return cls(text, tuple(sentences), tuple(places))

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and the last word that a span of characters touches, or None."""
        starts, ends = self._borders
        first, last = bisect_right(ends, start), bisect_left(starts, end) - 1
        return (first, last) if first <= last else None

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """Return start and end, in characters, of the words from the first to the last."""
        return self.places[first][0], self.places[last][1]

    @cached_property
    def _borders(self) -> tuple[list[int], list[int]]:
        return [start for start, _ in self.places], [end for _, end in self.places]


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer."""

    text: str
    """The text of the answer."""
    span: tuple[int, int]
    """Its first and its last word in the passage."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a passage."""

    id: str
    """The dataset's own name of the question."""
    passage: Passage
    """The passage."""
    question: tuple[str, ...]
    """The words of the question."""
    answers: tuple[Gold, ...] | None = None
    """The gold answers, any of which is right; None if they are unknown."""
    where: str = field(default="", compare=False)
    """File, article and paragraph of the question."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentences of the passage, then the question: the texts to embed."""
        return (*self.passage.sentences, self.question)


def read(path: Path) -> Examples[Example]:
    """Read the questions of a SQuAD file; unknown answers may be absent or an empty list."""
    try:
        data = b"".join(block.data for block in TextFile(str(path)).blocks(1 << 20))
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a JSON file of SQuAD 1.1") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8: {error}") from None
    if not text.strip():
        raise FormatError(f"{path} is empty; expected a JSON file of SQuAD 1.1")
    try:
        content = parse_json(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        reason = getattr(error, "msg", "too deep")
        raise FormatError(f"{path}:{line}: not JSON ({reason}); expected SQuAD 1.1") from None
    if not isinstance(content, dict):
        raise FormatError(
            f"{path}: found {_kind(content)} at the top; expected an object with 'data'"
        )
    # The official files have "1.1" and "v2.0", with the same layout; others may have any.
    version = str(content.get("version", "1.1"))
    if not re.fullmatch(r"v?[12](\.\d+)*", version):
        raise FormatError(f"{path}: version is {version!r:.60}; expected SQuAD 1.1 or 2.0")
    examples: Examples[Example] = Examples([], Counter())
    first_place: dict[str, str] = {}
    for example, impossible in _questions(path, _get(content, "data", list, str(path))):
        if example.id in first_place:
            raise FormatError(
                f"{example.where}: the id is used by {first_place[example.id]}, too; an id must be "
                "unique, since predictions are written by id"
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
    """Return an example without an answer from a passage and a question as raw text."""
    passage, question = Passage.from_text(texts[0]), tuple(split_words(texts[1]))
    for name, tokens in zip(ARGUMENTS, (passage.places, question), strict=True):
        if not tokens:
            raise InputError(f"the {name} has no words; expected running text")
    return Example("question", passage, question)


def labels(example: Example) -> Iterable[str]:
    """Return nothing: an answer is a span, not a label."""
    return ()


def label_set(examples: Sequence[Example]) -> dict[str, Any]:
    """Return nothing: the model needs no labels."""
    return {}


def _questions(path: Path, articles: list[Any]) -> Iterator[tuple[Example, bool]]:
    """Yield the questions of a file, and whether each is marked as impossible to answer."""
    for a, article in enumerate(articles, start=1):
        where = f"{path}: article {a}"
        article = _object(article, where)
        if isinstance(title := article.get("title"), str):
            where += f" ({title[:LONGEST_TITLE]})"  # it is part of the place of every question
        for p, paragraph in enumerate(_get(article, "paragraphs", list, where), start=1):
            place = f"{where}, paragraph {p}"
            passage = Passage.from_text(_get(_object(paragraph, place), "context", str, place))
            if not passage.places:
                raise FormatError(f"{place}: the context has no words")
            for q, question in enumerate(_get(paragraph, "qas", list, place), start=1):
                yield _question(question, passage, f"{place}, question {q}")


def _question(data: Any, passage: Passage, where: str) -> tuple[Example, bool]:
    name = _get(_object(data, where), "id", str, where)
    where += f" ({name})"
    question = tuple(split_words(_get(data, "question", str, where)))
    if not question:
        raise FormatError(f"{where}: the question has no words")
    impossible = data.get("is_impossible", False) is True
    answers = _get(data, "answers", list, where) if "answers" in data else []
    if impossible or not answers:
        return Example(name, passage, question, None, where), impossible
    golds = tuple(
        _gold(answer, passage, f"{where}, answer {k}") for k, answer in enumerate(answers, start=1)
    )
    return Example(name, passage, question, golds, where), False


def _gold(data: Any, passage: Passage, where: str) -> Gold:
    text = _get(_object(data, where), "text", str, where)
    start = _get(data, "answer_start", int, where)
    end = start + len(text)
    actual = passage.text[max(start, 0) : max(end, 0)]
    if start < 0 or actual != text:
        raise FormatError(
            f"{where}: at answer_start {start} the context has {_short(actual)}; expected the "
            f"answer's text, {_short(text)}"
        )
    span = passage.span(start, end)
    if span is None:
        raise FormatError(f"{where}: the answer {_short(text)} has no words")
    return Gold(text, span)


def _get(data: dict[str, Any], key: str, kind: type[T], where: str) -> T:
    """Return a value of a JSON object; raise an error if it is missing or of another type."""
    if key not in data:
        raise FormatError(f"{where}: no {key!r}; expected it as in SQuAD 1.1")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FormatError(f"{where}: {key!r} is {_kind(value)}; expected {_NAMES[kind]}")
    return value


def _object(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise FormatError(f"{where} is {_kind(data)}; expected an object")
    return data


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
