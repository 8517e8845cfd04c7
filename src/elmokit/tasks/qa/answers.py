"""Answers: what a model gives for a question, in a file, in JSON, and in a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.tasks.qa.data import Example

if TYPE_CHECKING:
    from rich.text import Text

WINDOW = 240
"""Characters of a passage shown on either side of an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A stretch of the passage."""

    text: str
    start: int
    end: int
    """In characters: `passage.text[start:end] == text`."""
    score: float
    """The probability that it begins at its first word times that it ends at its last."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The best answer, and what came next."""

    best: Answer
    others: tuple[Answer, ...] = ()


def write(
    file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction | None]
) -> None:
    """One JSON object, the answer's text by the question's id, as SQuAD's scripts read it.

    A question that was not answered is left out.
    """
    pairs = zip(examples, predictions, strict=True)
    answers = {example.id: given.best.text for example, given in pairs if given is not None}
    json.dump(answers, file, ensure_ascii=False, indent=0)
    file.write("\n")


def record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """An answer for machines."""

    def fields(answer: Answer) -> dict[str, Any]:
        return {
            "text": answer.text,
            "start": answer.start,
            "end": answer.end,
            "score": round(answer.score, 6),
        }

    return {
        "id": example.id,
        "question": " ".join(example.question),
        "answer": fields(prediction.best),
        "others": [fields(answer) for answer in prediction.others],
    }


def show(example: Example, prediction: Prediction) -> Text:
    """The passage around the answer, which is highlighted, and the answers that came next."""
    from rich.text import Text

    best, passage = prediction.best, example.passage.text
    first, last = max(best.start - WINDOW, 0), min(best.end + WINDOW, len(passage))
    # No word is cut: what is shown begins and ends at white space.
    while 0 < first < best.start and not passage[first - 1].isspace():
        first += 1
    while best.end < last < len(passage) and not passage[last].isspace():
        last -= 1
    text = Text()
    text.append(" ".join(example.question) + "\n", style="dim")
    text.append("… " if first else "")
    text.append(_line(passage[first : best.start]))
    text.append(_line(best.text), style="bold black on green")
    text.append(_line(passage[best.end : last]).rstrip())
    text.append(" …" if last < len(passage) else "")
    text.append(f"\n  {best.score:4.0%}  ", style="dim")
    text.append(_line(best.text), style="bold green")
    for answer in prediction.others:
        text.append(f"\n  {answer.score:4.0%}  {_line(answer.text)}", style="dim")
    return text


def _line(text: str) -> str:
    """Line breaks as spaces, and nothing that a terminal could take for a command."""
    return "".join(c if c.isprintable() else " " for c in text)
