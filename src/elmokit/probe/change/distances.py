"""How far two piles of vectors lie apart, and how far they would by chance.

APD, the average pairwise distance: the mean cosine distance of a vector of one pile and one of the
other. PRT, the distance of the prototypes: the cosine distance of the mean vectors. Knows nothing
about words.

Shape letters: N vectors of both piles, P deals, D size of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.probe.neighbors.nearest import unit_length

DIGITS = 6


@dataclass(frozen=True)
class Distances:
    """What one layer says about a word."""

    apd: float
    """The mean cosine distance of a use then and a use now, 0 to 2."""
    within_then: float
    """Of two uses then."""
    within_now: float
    """Of two uses now."""
    excess: float
    """APD above the mean of both: what is not the word's ordinary variety."""
    prt: float
    """The cosine distance of the mean vectors."""
    apd_by_chance: float
    """The mean APD of uses that are dealt out at random."""
    apd_p: float
    """How often chance gives an APD as large."""
    prt_by_chance: float
    prt_p: float


def distances(vectors_ND: FloatArray, then: int, first_PN: npt.NDArray[np.bool_]) -> Distances:
    """Of the first `then` vectors and the others; `first_PN` says who is first in each deal."""
    raw_ND = np.asarray(vectors_ND, np.float64)
    unit_ND = np.asarray(unit_length(raw_ND), np.float64)
    real_1N = (np.arange(len(raw_ND)) < then)[None]
    apd, apd_P = (_apd(unit_ND, who) for who in (real_1N, first_PN))
    prt, prt_P = (_prt(raw_ND, who) for who in (real_1N, first_PN))
    within_then, within_now = _within(unit_ND[:then]), _within(unit_ND[then:])
    return Distances(
        apd=rounded(apd[0]),
        within_then=rounded(within_then),
        within_now=rounded(within_now),
        excess=rounded(apd[0] - (within_then + within_now) / 2),
        prt=rounded(prt[0]),
        apd_by_chance=rounded(apd_P.mean()),
        apd_p=_p(apd[0], apd_P),
        prt_by_chance=rounded(prt_P.mean()),
        prt_p=_p(prt[0], prt_P),
    )


def dealt(
    then: int, now: int, permutations: int, chance: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Piles of the same sizes, at random: (P, N), True for then."""
    real = np.arange(then + now) < then
    return chance.permuted(np.tile(real, (permutations, 1)), axis=1)


def _apd(unit_ND: npt.NDArray[np.float64], first_PN: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """The mean cosine of all pairs is the product of the means, as the vectors have length 1."""
    one_PD, two_PD = _means(unit_ND, first_PN)
    found: npt.NDArray[Any] = 1 - np.einsum("pd,pd->p", one_PD, two_PD)
    return found


def _prt(raw_ND: npt.NDArray[np.float64], first_PN: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    one_PD, two_PD = (unit_length(mean_PD) for mean_PD in _means(raw_ND, first_PN))
    found: npt.NDArray[Any] = 1 - np.einsum("pd,pd->p", one_PD, two_PD)
    return found


def _means(
    x_ND: npt.NDArray[np.float64], first_PN: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    size = int(first_PN[0].sum())
    one_PD = first_PN.astype(np.float64) @ x_ND
    return one_PD / size, (x_ND.sum(axis=0) - one_PD) / (len(x_ND) - size)


def _within(unit_ND: npt.NDArray[np.float64]) -> float:
    """The mean cosine distance of two different ones."""
    total, count = unit_ND.sum(axis=0), len(unit_ND)
    return float(1 - (total @ total - (unit_ND**2).sum()) / (count * (count - 1)))


def _p(real: float, chance_P: npt.NDArray[Any]) -> float:
    """With the real deal among the possible ones, as it should be: never 0."""
    as_large = int((np.round(chance_P, DIGITS) >= np.round(real, DIGITS)).sum())
    return round((1 + as_large) / (1 + len(chance_P)), 4)


def rounded(value: Any) -> float:
    """To so many digits that the order of a sum does not show."""
    return round(float(value), DIGITS) + 0.0  # no -0.0
