"""Semantic role labeling: who did what to whom, when and where, for each predicate."""

from elmokit.tasks.srl.data import (
    ARGUMENTS,
    Example,
    Frame,
    Prediction,
    facts,
    labels,
    parse,
    read,
    record,
    show,
    write,
)
from elmokit.tasks.srl.metric import SCORE, score
from elmokit.tasks.srl.model import PAPER, PLACE, PRESETS, Model, Sizes

__all__ = [
    "ARGUMENTS",
    "PAPER",
    "PLACE",
    "PRESETS",
    "SCORE",
    "Example",
    "Frame",
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
