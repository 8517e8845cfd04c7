"""Distances between two groups of vectors, and a permutation test of them.

APD, the average pairwise distance, is the mean cosine distance between a vector of one group and
one of the other. PRT, the prototype distance, is the cosine distance between the mean vectors of
the groups. Knows nothing about words.

The test permutes units, such as documents, and not single vectors. It compares a distance divided
by what the spread of the units makes of it by chance (a studentized statistic), so that groups may
differ in size, in the vectors per unit and in spread. From sums over units and their products alone
it is fast: the vectors themselves are read once.

Shape letters: N vectors of both groups, U units, P permutations, D size of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.probe.neighbors.word_use import unit_length

DIGITS = 6
"""Digits of the distances; further ones depend on the order of summation."""
MIN_UNITS = 2
"""Units of each group from which on there is a test: from one unit, no spread can be seen."""

Floats = npt.NDArray[np.float64]


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
    apd_by_chance: float | None
    """APD to expect if the units were assigned to the texts at random; None without a test."""
    apd_p: float | None
    """p-value of the APD beyond the distances within; None if a text has fewer than two units."""
    prt_by_chance: float | None
    """PRT to expect if the units were assigned to the texts at random; None without a test."""
    prt_p: float | None
    """p-value of the PRT; None if a text has fewer than two units."""
    apd_q: float | None = None
    """`apd_p` corrected for the number of words (Benjamini–Hochberg)."""
    prt_q: float | None = None
    """`prt_p` corrected for the number of words (Benjamini–Hochberg)."""


def measure_distances(
    vectors_ND: FloatArray,
    then: int,
    units_N: npt.NDArray[np.int64] | None = None,
    groups_PU: npt.NDArray[np.bool_] | None = None,
) -> Distances:
    """Compare two groups of vectors.

    Args:
        vectors_ND: Vectors of both groups.
        then: Size of the first group, which comes first.
        units_N: Unit of each vector, ascending from 0 on; a unit is in one of the groups. Without
            it, nothing is tested.
        groups_PU: Random groups of units, from `permuted_groups`, for the test.
    """
    raw_ND = np.asarray(vectors_ND, np.float64)
    unit_ND = np.asarray(unit_length(raw_ND), np.float64)
    within_then, within_now = _within(unit_ND[:then]), _within(unit_ND[then:])
    apd = float(1 - unit_ND[:then].mean(axis=0) @ unit_ND[then:].mean(axis=0))
    one_D, two_D = (unit_length(x_ND.mean(axis=0)) for x_ND in (raw_ND[:then], raw_ND[then:]))
    prt = float(1 - one_D @ two_D)
    apd_test = prt_test = PermutationTest(None, None)
    if units_N is not None and groups_PU is not None:
        actual_1U = (np.arange(units_N[-1] + 1) < units_N[then])[None]
        if min(actual_1U.sum(), (~actual_1U).sum()) >= MIN_UNITS:
            prt_test = _test(UnitSums.of(raw_ND, units_N), actual_1U, groups_PU, cosine=True)
            apd_test = _test(UnitSums.of(unit_ND, units_N), actual_1U, groups_PU, cosine=False)
    return Distances(
        apd=round_distance(apd),
        within_then=round_distance(within_then),
        within_now=round_distance(within_now),
        excess=round_distance(apd - (within_then + within_now) / 2),
        prt=round_distance(prt),
        apd_by_chance=apd_test.by_chance,
        apd_p=apd_test.p,
        prt_by_chance=prt_test.by_chance,
        prt_p=prt_test.p,
    )


def permuted_groups(
    then: int, now: int, permutations: int, random: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return random groups of units: (P, U), True for members of the first group.

    If there are not more possible groups than `permutations`, all of them are returned once,
    without the actual one.

    Args:
        then: Units of the first group.
        now: Units of the second group.
        permutations: How many groups to draw.
        random: Random numbers.
    """
    units = then + now
    if comb(units, then) - 1 <= permutations:
        groups = np.zeros((comb(units, then) - 1, units), np.bool_)
        # The first combination is that of the actual group.
        for row, members in zip(
            groups, islice(combinations(range(units), then), 1, None), strict=True
        ):
            row[list(members)] = True
        return groups
    actual = np.arange(units) < then
    return random.permuted(np.tile(actual, (permutations, 1)), axis=1)


class PermutationTest(NamedTuple):
    """The result of a permutation test."""

    by_chance: float | None
    """The distance to expect by chance."""
    p: float | None
    """How often random groups are as far apart, compared with the spread of their units."""


class UnitSums(NamedTuple):
    """What the test needs to know about vectors: products of the sums over units."""

    products_UU: Floats
    """Inner products of the summed vectors of two units."""
    sizes_U: Floats
    """Vectors per unit."""

    @classmethod
    def of(cls, x_ND: Floats, units_N: npt.NDArray[np.int64]) -> UnitSums:
        """Sum up vectors over their units."""
        sums_UD = np.zeros((int(units_N[-1]) + 1, x_ND.shape[1]))
        np.add.at(sums_UD, units_N, x_ND)
        return cls(sums_UD @ sums_UD.T, np.bincount(units_N).astype(np.float64))


class GroupPairs(NamedTuple):
    """Means of pairs of groups, and how uncertain they are."""

    cross_P: Floats
    """Inner product of the two means."""
    squares_2P: tuple[Floats, Floats]
    """Squared length of each mean."""
    variances_2P: tuple[Floats, Floats]
    """Variance of each mean, estimated from the spread of the units of its group."""


def _compare_groups(sums: UnitSums, groups_PU: npt.NDArray[np.bool_]) -> GroupPairs:
    first_PU = groups_PU.astype(np.float64)
    to_first_PU = first_PU @ sums.products_UU  # products of the group's sum with each unit's
    to_second_PU = sums.products_UU.sum(axis=0) - to_first_PU
    squares, variances = [], []
    for members_PU, products_PU in ((first_PU, to_first_PU), (1 - first_PU, to_second_PU)):
        size_P1 = (members_PU @ sums.sizes_U)[:, None]
        units = members_PU[0].sum()
        square_P1 = (products_PU * members_PU).sum(axis=1, keepdims=True) / size_P1**2
        # |sum of the unit - size of the unit * mean of the group|^2
        spread_PU = (
            np.diag(sums.products_UU)
            - 2 * products_PU * sums.sizes_U / size_P1
            + sums.sizes_U**2 * square_P1
        )
        # The jackknife: how far the mean moves if a unit is left out.
        moved_PU = (
            members_PU * np.maximum(spread_PU, 0) / (size_P1 - sums.sizes_U * members_PU) ** 2
        )
        squares.append(square_P1[:, 0])
        variances.append(moved_PU.sum(axis=1) * (units - 1) / units)
    size_P = first_PU @ sums.sizes_U
    cross_P = (to_second_PU * first_PU).sum(axis=1) / size_P / (sums.sizes_U.sum() - size_P)
    return GroupPairs(cross_P, (squares[0], squares[1]), (variances[0], variances[1]))


def _test(
    sums: UnitSums,
    actual_1U: npt.NDArray[np.bool_],
    groups_PU: npt.NDArray[np.bool_],
    cosine: bool,
) -> PermutationTest:
    """Test the distance between two means, or between their directions if `cosine`."""

    def compare(groups: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        pairs = _compare_groups(sums, groups)
        (one_P, two_P), (variance_one_P, variance_two_P) = pairs.squares_2P, pairs.variances_2P
        if cosine:
            length_P = np.maximum(np.sqrt(one_P * two_P), 1e-300)
            distance_P = 1 - pairs.cross_P / length_P
            noise_P = variance_one_P / np.maximum(one_P, 1e-300) + variance_two_P / np.maximum(
                two_P, 1e-300
            )
        else:
            distance_P = one_P + two_P - 2 * pairs.cross_P
            noise_P = variance_one_P + variance_two_P
        distance_P, noise_P = np.round(distance_P, 9), np.round(noise_P, 9)
        ratio_P = np.full(len(distance_P), np.inf)
        np.divide(distance_P, noise_P, out=ratio_P, where=noise_P > 0)
        ratio_P[distance_P <= 0] = 0
        return ratio_P, noise_P, 1 - pairs.cross_P

    ratio_1, noise_1, _ = compare(actual_1U)
    ratio_P, _, apd_P = compare(groups_PU)
    as_large = int((np.round(ratio_P, DIGITS) >= np.round(ratio_1[0], DIGITS)).sum())
    # The actual groups count too, so p is never 0.
    p = round((1 + as_large) / (1 + len(ratio_P)), DIGITS)
    if not cosine:
        return PermutationTest(round_distance(apd_P.mean()), p)
    finite = ratio_P[np.isfinite(ratio_P)]
    expected = finite.mean() * noise_1[0] if len(finite) else 0.0
    return PermutationTest(round_distance(expected), p)


def _within(unit_ND: Floats) -> float:
    """Return the mean cosine distance between two different vectors of a group."""
    total, count = unit_ND.sum(axis=0), len(unit_ND)
    return float(1 - (total @ total - (unit_ND**2).sum()) / (count * (count - 1)))


def round_distance(value: float | np.floating[npt.NBitBase]) -> float:
    """Return a distance rounded to `DIGITS` digits, without a negative zero."""
    return round(float(value), DIGITS) + 0.0
