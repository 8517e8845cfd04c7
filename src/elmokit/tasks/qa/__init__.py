"""Question answering: where in a passage the answer stands (SQuAD 1.1).

`data.py` reads passages with questions, `model.py` is BiDAF with self-attention, `answers.py` is
what it gives, `metric.py` the official EM and F1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from elmokit.tasks.qa.answers import Answer, Prediction, record, show, write
from elmokit.tasks.qa.data import ARGUMENTS, Example, parse, read
from elmokit.tasks.qa.metric import SCORE, score
from elmokit.tasks.qa.model import PAPER, PLACE, PRESETS, Model, Sizes

__all__ = [
    "ARGUMENTS",
    "PAPER",
    "PLACE",
    "PRESETS",
    "SCORE",
    "Answer",
    "Example",
    "Model",
    "Prediction",
    "Sizes",
    "facts",
    "labels",
    "parse",
    "read",
    "record",
    "score",
    "show",
    "write",
]


def labels(example: Example) -> Iterable[str]:
    """None: an answer is a place."""
    return ()


def facts(examples: Sequence[Example]) -> dict[str, Any]:
    """Nothing: the model knows places, no labels."""
    return {}
