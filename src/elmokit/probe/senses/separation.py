"""How far apart a model keeps the senses of one word: uses of it in sentences of known sense.

For each layer: how often the nearest other use has the same sense, and the mean cosine of two uses
of the same sense and of different ones.

Shape letters: N uses, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.probe.neighbors.nearest import in_context, unit_length

TIE = 1e-6
"""Cosines that differ by less are equal: layer 0 has one vector for all uses of a word."""


@dataclass(frozen=True)
class Apart:
    """One layer's answer."""

    layer: int
    accuracy: float
    """How often the nearest other use has the same sense; of equally near ones, which part."""
    within: float
    """The mean cosine of two uses of the same sense."""
    between: float
    """The same for different senses."""


def senses_apart(elmo: Elmo, word: str, uses: Sequence[tuple[str, str]]) -> list[Apart]:
    """Compare the uses of a word in sentences, given as (sense, sentence), layer by layer."""
    senses = np.array([sense for sense, _ in uses])
    counts = np.unique(senses, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < 2:
        raise InputError(
            f"{len(uses)} uses of {len(counts)} senses; expected two senses or more, each twice"
        )
    found = [in_context(elmo, word, sentence, "all")[1] for _, sentence in uses]
    layers_LND = np.stack(found, axis=1)
    return [_apart(layer, x_ND, senses) for layer, x_ND in enumerate(layers_LND)]


def _apart(
    layer: int, x_ND: FloatArray, senses: np.ndarray[tuple[int], np.dtype[np.str_]]
) -> Apart:
    unit_ND = unit_length(x_ND).astype(np.float64)
    cosine_NN = unit_ND @ unit_ND.T
    same_NN = senses[:, None] == senses[None, :]
    other_NN = ~np.eye(len(senses), dtype=bool)
    rivals_NN = np.where(other_NN, cosine_NN, -np.inf)
    nearest_NN = rivals_NN > rivals_NN.max(1, keepdims=True) - TIE
    right_N = (nearest_NN & same_NN).sum(1) / nearest_NN.sum(1)
    return Apart(
        layer,
        float(right_N.mean()),
        float(cosine_NN[same_NN & other_NN].mean()),
        float(cosine_NN[~same_NN].mean()),
    )


def read_senses(path: str | Path) -> list[tuple[str, str]]:
    """Lines of a sense and a sentence with a tab between; those that begin with # are notes."""
    path = Path(path).expanduser()
    uses = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        sense, tab, sentence = line.partition("\t")
        if not tab or not sense.strip() or not sentence.strip():
            raise FormatError(
                f"{path}, line {number} is {line[:60]!r}; expected a sense and a sentence with a "
                "tab between them"
            )
        uses.append((sense.strip(), sentence.strip()))
    return uses
