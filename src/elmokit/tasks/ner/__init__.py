"""Named entity recognition: persons, places and whatever else a training set marks in sentences."""

from elmokit.tasks.ner.data import (
    ARGUMENTS,
    Example,
    Prediction,
    facts,
    labels,
    parse,
    read,
    record,
    show,
    write,
)
from elmokit.tasks.ner.metric import SCORE, score
from elmokit.tasks.ner.model import PAPER, PLACE, PRESETS, Model, Sizes

__all__ = [
    "ARGUMENTS",
    "PAPER",
    "PLACE",
    "PRESETS",
    "SCORE",
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
