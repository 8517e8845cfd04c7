"""How well a model separates the senses of one word, from sentences whose sense is known.

For each layer: how often the nearest other use has the same sense, and the mean cosine of two uses
of the same sense and of different senses.

Shape letters: N uses, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit import Elmo
from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, InputError
from elmokit.probe.neighbors.word_use import embed_word, unit_length
from elmokit.text.files import read_lines

TIE = 1e-6
"""Cosines that differ by less count as equal: layer 0 has one vector for all uses of a word."""


@dataclass(frozen=True)
class SenseSeparation:
    """How well one layer separates the senses."""

    layer: int
    """Number of the layer; 0 is the characters."""
    accuracy: float
    """How often the nearest other use has the same sense; among equally near uses, the fraction."""
    within: float
    """Mean cosine of two uses of the same sense."""
    between: float
    """Mean cosine of two uses of different senses."""


def sense_separation(
    elmo: Elmo, word: str, uses: Sequence[tuple[str, str]]
) -> list[SenseSeparation]:
    """Compare the uses of a word in sentences, given as (sense, sentence), layer by layer."""
    senses = np.array([sense for sense, _ in uses])
    counts = np.unique(senses, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < 2:
        raise InputError(
            f"there are {len(uses)} uses of {len(counts)} senses; expected at least two senses, "
            "each with at least two uses"
        )
    vectors = [embed_word(elmo, word, sentence, "all").vector for _, sentence in uses]
    layers_LND = np.stack(vectors, axis=1)
    return [_separate(layer, x_ND, senses) for layer, x_ND in enumerate(layers_LND)]


def _separate(
    layer: int, x_ND: FloatArray, senses: np.ndarray[tuple[int], np.dtype[np.str_]]
) -> SenseSeparation:
    unit_ND = unit_length(x_ND).astype(np.float64)
    cosine_NN = unit_ND @ unit_ND.T
    same_NN = senses[:, None] == senses[None, :]
    other_NN = ~np.eye(len(senses), dtype=bool)
    candidates_NN = np.where(other_NN, cosine_NN, -np.inf)
    nearest_NN = candidates_NN > candidates_NN.max(1, keepdims=True) - TIE
    correct_N = (nearest_NN & same_NN).sum(1) / nearest_NN.sum(1)
    return SenseSeparation(
        layer,
        float(correct_N.mean()),
        float(cosine_NN[same_NN & other_NN].mean()),
        float(cosine_NN[~same_NN].mean()),
    )


def read_senses(path: str | Path) -> list[tuple[str, str]]:
    """Read lines of a sense and a sentence, separated by a tab; lines with # are notes."""
    uses = []
    for where, line in read_lines(Path(path).expanduser()):
        if not line.strip() or line.startswith("#"):
            continue
        sense, tab, sentence = line.partition("\t")
        if not tab or not sense.strip() or not sentence.strip():
            raise FormatError(
                f"{where}: found {line[:60]!r}; expected a sense and a sentence, separated by a tab"
            )
        uses.append((sense.strip(), sentence.strip()))
    return uses
