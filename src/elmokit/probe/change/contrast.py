"""Uses of a word that differ from those in another text: the examples of a change.

Shape letters: N uses of both texts, D size of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.probe.change.distances import DIGITS, round_distance
from elmokit.probe.change.targets import UseSample
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.probe.plane import project_to_plane


class ContrastedUse(NamedTuple):
    """A use of a word, compared with the uses in the other text."""

    words: Sequence[str]
    """Words of the sentence."""
    position: int
    """Index of the word in the sentence."""
    distance: float
    """Mean cosine distance to the uses in the other text."""
    contrast: float
    """`distance` minus the mean distance to the other uses of its own text."""
    point: tuple[float, float]
    """Coordinates on a plane, for a figure."""


def contrast_uses(
    one: UseSample, two: UseSample, vectors_ND: FloatArray
) -> tuple[list[ContrastedUse], list[ContrastedUse]]:
    """Compare the uses of each text with those of the other; the most different ones come first."""
    unit_ND = np.asarray(unit_length(vectors_ND), np.float64)
    points = project_to_plane(unit_ND)
    size = len(one.uses)
    halves = (unit_ND[:size], unit_ND[size:])
    contrasted = []
    for k, sample in enumerate((one, two)):
        own_ND, other_ND = halves[k], halves[1 - k]
        distance_N = 1 - own_ND @ other_ND.mean(axis=0)
        cosine_sum_N = own_ND @ own_ND.sum(axis=0) - (own_ND**2).sum(axis=1)
        contrast_N = distance_N - (1 - cosine_sum_N / (len(own_ND) - 1))
        order = np.argsort(-np.round(contrast_N, DIGITS), kind="stable").tolist()
        own_points = points[:size] if k == 0 else points[size:]
        uses = []
        for i in order:
            words, position = sample.uses[i]
            distance, contrast = round_distance(distance_N[i]), round_distance(contrast_N[i])
            uses.append(ContrastedUse(words, position, distance, contrast, own_points[i]))
        contrasted.append(uses)
    return contrasted[0], contrasted[1]
