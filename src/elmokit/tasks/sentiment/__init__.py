"""Sentiment of a sentence, in five classes or two: BCN (McCann et al. 2017)."""

from elmokit.tasks.sentiment.data import (
    ARGUMENTS,
    Example,
    Prediction,
    facts,
    labels,
    parse,
    prepare,
    read,
    record,
    show,
    write,
)
from elmokit.tasks.sentiment.metric import SCORE, score
from elmokit.tasks.sentiment.model import Model, Sizes
from elmokit.tasks.task import Place, Preset, Schooling

PAPER = "biattentive classification network (McCann et al. 2017, arXiv:1708.00107)"
PLACE: Place = "both"
PRESETS = {
    "cpu": Preset(
        sizes=Sizes(hidden=64, dropout=0.1, phrases=10),
        schooling=Schooling(epochs=5, batch=64, rate=0.002, patience=2),
        dropout=0.1,
    ),
    "paper": Preset(
        sizes=Sizes(hidden=300, dropout=0.3, phrases=4),
        schooling=Schooling(epochs=20, batch=100, rate=0.0001, patience=5),
        dropout=0.5,
    ),
}

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
    "prepare",
    "read",
    "record",
    "score",
    "show",
    "write",
]
