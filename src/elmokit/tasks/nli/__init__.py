"""Textual entailment: does the second sentence follow from the first? ESIM (Chen et al. 2017)."""

from elmokit.tasks.nli.data import (
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
from elmokit.tasks.nli.metric import SCORE, score
from elmokit.tasks.nli.model import Model, Sizes
from elmokit.tasks.task import Place, Preset, Schooling

PAPER = "ESIM (Chen et al. 2017, arXiv:1609.06038)"
PLACE: Place = "both"
PRESETS = {
    "cpu": Preset(
        sizes=Sizes(hidden=64, dropout=0.2),
        schooling=Schooling(epochs=4, batch=32, rate=0.001, patience=3, steps=400),
        dropout=0.2,
    ),
    "paper": Preset(
        sizes=Sizes(hidden=300, dropout=0.5),
        schooling=Schooling(epochs=75, batch=32, rate=0.0004, patience=5, clip=5.0),
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
    "read",
    "record",
    "score",
    "show",
    "write",
]
