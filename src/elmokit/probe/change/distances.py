"""Distances between two groups of vectors, and a permutation test of them.

APD, the average pairwise distance, is the mean cosine distance between a vector of one group and
one of the other. PRT, the prototype distance, is the cosine distance between the mean vectors of
the groups. Knows nothing about words.

Shape letters: N vectors of both groups, P permutations, D size of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.probe.neighbors.word_use import unit_length

DIGITS = 6
"""Digits of the distances; further ones depend on the order of summation."""


@dataclass(frozen=True)
class Distances:
    """Distances between the uses of a word in two texts, in one layer."""

    apd: float
    """Mean cosine distance between a use then and a use now, 0 to 2."""
    within_then: float
    """Mean cosine distance between two uses then."""
    within_now: float
    """Mean cosine distance between two uses now."""
    excess: float
    """APD minus the mean of both distances within: what is not ordinary variety of the word."""
    prt: float
    """Cosine distance between the mean vectors."""
    apd_by_chance: float
    """Mean APD of random groups."""
    apd_p: float
    """p-value of the APD: how often random groups have an APD as large."""
    prt_by_chance: float
    """Mean PRT of random groups."""
    prt_p: float
    """p-value of the PRT: how often random groups have a PRT as large."""


def measure_distances(
    vectors_ND: FloatArray, then: int, groups_PN: npt.NDArray[np.bool_]
) -> Distances:
    """Compare two groups of vectors.

    Args:
        vectors_ND: Vectors of both groups.
        then: Size of the first group, which comes first.
        groups_PN: Random groups of the same sizes, from `permuted_groups`.
    """
    raw_ND = np.asarray(vectors_ND, np.float64)
    unit_ND = np.asarray(unit_length(raw_ND), np.float64)
    actual_1N = (np.arange(len(raw_ND)) < then)[None]
    apd, apd_P = (_apd(unit_ND, groups) for groups in (actual_1N, groups_PN))
    prt, prt_P = (_prt(raw_ND, groups) for groups in (actual_1N, groups_PN))
    within_then, within_now = _within(unit_ND[:then]), _within(unit_ND[then:])
    return Distances(
        apd=round_distance(apd[0]),
        within_then=round_distance(within_then),
        within_now=round_distance(within_now),
        excess=round_distance(apd[0] - (within_then + within_now) / 2),
        prt=round_distance(prt[0]),
        apd_by_chance=round_distance(apd_P.mean()),
        apd_p=_p_value(apd[0], apd_P),
        prt_by_chance=round_distance(prt_P.mean()),
        prt_p=_p_value(prt[0], prt_P),
    )


def permuted_groups(
    then: int, now: int, permutations: int, random: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return random groups of the same sizes: (P, N), True for members of the first group."""
    actual = np.arange(then + now) < then
    return random.permuted(np.tile(actual, (permutations, 1)), axis=1)


def _apd(unit_ND: npt.NDArray[np.float64], groups_PN: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the APD: for vectors of length 1 the mean cosine is the product of the means."""
    first_PD, second_PD = _means(unit_ND, groups_PN)
    distance_P: npt.NDArray[Any] = 1 - np.einsum("pd,pd->p", first_PD, second_PD)
    return distance_P


def _prt(raw_ND: npt.NDArray[np.float64], groups_PN: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    first_PD, second_PD = (unit_length(mean_PD) for mean_PD in _means(raw_ND, groups_PN))
    distance_P: npt.NDArray[Any] = 1 - np.einsum("pd,pd->p", first_PD, second_PD)
    return distance_P


def _means(
    x_ND: npt.NDArray[np.float64], groups_PN: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    size = int(groups_PN[0].sum())
    sum_PD = groups_PN.astype(np.float64) @ x_ND
    return sum_PD / size, (x_ND.sum(axis=0) - sum_PD) / (len(x_ND) - size)


def _within(unit_ND: npt.NDArray[np.float64]) -> float:
    """Return the mean cosine distance between two different vectors of a group."""
    total, count = unit_ND.sum(axis=0), len(unit_ND)
    return float(1 - (total @ total - (unit_ND**2).sum()) / (count * (count - 1)))


def _p_value(actual: float, random_P: npt.NDArray[Any]) -> float:
    """Return the p-value of a permutation test; the actual groups count too, so it is never 0."""
    as_large = int((np.round(random_P, DIGITS) >= np.round(actual, DIGITS)).sum())
    return round((1 + as_large) / (1 + len(random_P)), 4)


def round_distance(value: Any) -> float:
    """Return a distance rounded to `DIGITS` digits, without a negative zero."""
    return round(float(value), DIGITS) + 0.0
