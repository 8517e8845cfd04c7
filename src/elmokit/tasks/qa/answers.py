"""Predicted answers, and how they are written to files, JSON and a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.tasks.offsets import confidence_field
from elmokit.tasks.qa.data import Example

if TYPE_CHECKING:
    from rich.text import Text

WINDOW = 240
"""Characters of the passage that are rendered on either side of an answer."""


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """A predicted answer: a part of the passage."""

    text: str
    """The text of the answer, `passage.text[start:end]`."""
    start: int
    """Index of its first character in the passage."""
    end: int
    """Index after its last character in the passage."""
    score: float
    """The probability of its first word to begin the answer, times that of its last to end it."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The best answer, and the runners-up."""

    best: AnswerSpan
    """The best answer."""
    others: tuple[AnswerSpan, ...] = ()
    """The next best answers that do not overlap it or each other, best first."""


def write(
    file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction | None]
) -> None:
    """Write one JSON object, the answer's text by the question's id, as SQuAD's scripts read it.

    A question without a prediction is left out.
    """
    pairs = zip(examples, predictions, strict=True)
    answers = {example.id: each.best.text for example, each in pairs if each is not None}
    json.dump(answers, file, ensure_ascii=False, indent=0)
    file.write("\n")


def to_record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """Return a question and its predicted answers as a JSON object."""

    def fields(answer: AnswerSpan) -> dict[str, Any]:
        return {
            "text": answer.text,
            "start": answer.start,
            "end": answer.end,
            "score": round(answer.score, 6),
            "start_char": answer.start,
            "end_char": answer.end,
            **confidence_field(answer.score),
        }

    return {
        "id": example.id,
        "question": " ".join(example.question),
        "answer": fields(prediction.best),
        "others": [fields(answer) for answer in prediction.others],
    }


def render(example: Example, prediction: Prediction) -> Text:
    """Return the passage around the highlighted answer, and the runners-up."""
    from rich.text import Text

    best, passage = prediction.best, example.passage.text
    first, last = max(best.start - WINDOW, 0), min(best.end + WINDOW, len(passage))
    # No word is cut: the excerpt begins and ends at white space.
    while 0 < first < best.start and not passage[first - 1].isspace():
        first += 1
    while best.end < last < len(passage) and not passage[last].isspace():
        last -= 1
    text = Text()
    text.append(" ".join(example.question) + "\n", style="dim")
    text.append("… " if first else "")
    text.append(_printable(passage[first : best.start]))
    text.append(_printable(best.text), style="bold black on green")
    text.append(_printable(passage[best.end : last]).rstrip())
    text.append(" …" if last < len(passage) else "")
    text.append(f"\n  {best.score:4.0%}  ", style="dim")
    text.append(_printable(best.text), style="bold green")
    for answer in prediction.others:
        text.append(f"\n  {answer.score:4.0%}  {_printable(answer.text)}", style="dim")
    return text


def _printable(text: str) -> str:
    """Replace line breaks, and everything that a terminal could take for a command, by spaces."""
    return "".join(c if c.isprintable() else " " for c in text)
