"""Coreference: which words of a document mean the same thing.

End-to-end span ranking (Lee et al. 2017) on CoNLL-2012 files; the average of MUC, B³ and CEAFφ4.
"""

from elmokit.tasks.coref.data import (
    ARGUMENTS,
    Clusters,
    Example,
    Mention,
    facts,
    labels,
    parse,
    read,
    record,
    show,
    write,
)
from elmokit.tasks.coref.metric import SCORE, score
from elmokit.tasks.coref.model import Model, Sizes
from elmokit.tasks.task import Place, Preset, Schooling

PAPER = "Lee et al. 2017, End-to-end Neural Coreference Resolution"
PLACE: Place = "input"

PRESETS = {
    "cpu": Preset(
        sizes=Sizes(
            hidden=64,
            ffnn=100,
            depth=1,
            features=20,
            characters=20,
            width=8,
            keep=0.22,
            antecedents=100,
            product=100,
            sentences=40,
            mention_loss=0.5,
        ),
        schooling=Schooling(epochs=15, batch=1, rate=0.002, patience=6, steps=50),
        dropout=0.4,
    ),
    "paper": Preset(
        sizes=Sizes(),
        schooling=Schooling(epochs=150, batch=1, rate=0.001, patience=10),
        dropout=0.5,
    ),
}

__all__ = [
    "ARGUMENTS",
    "PAPER",
    "PLACE",
    "PRESETS",
    "SCORE",
    "Clusters",
    "Example",
    "Mention",
    "Model",
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
