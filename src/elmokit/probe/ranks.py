"""What only the order of numbers says: ranks, Spearman's correlation, the area under the curve.

Equal numbers share the mean of their ranks, so that no order among them is made up.
Shape letters: N numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def ranks(values: npt.ArrayLike) -> Array:
    """1 for the least; equal numbers share the mean of theirs."""
    _, which_N, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    mean = np.cumsum(counts) - (counts - 1) / 2
    found: Array = mean[which_N]
    return found


def spearman(one: npt.ArrayLike, other: npt.ArrayLike) -> float | None:
    """The correlation of the ranks, -1 to 1; nothing if the numbers of one are all equal."""
    a_N, b_N = (each - each.mean() for each in (ranks(one), ranks(other)))
    length = math.sqrt(float(a_N @ a_N) * float(b_N @ b_N))
    return float(a_N @ b_N) / length if length else None


def spearman_error(correlation: float, count: int) -> float | None:
    """Its standard error, after Bonett and Wright (2000); nothing for fewer than 4 numbers."""
    if count < 4:
        return None
    return (1 - correlation**2) * math.sqrt((1 + correlation**2 / 2) / (count - 3))


def area_under_curve(values: Sequence[float] | Array, yes: Sequence[bool]) -> float | None:
    """How often a yes has the larger number than a no, equal numbers counting half.

    Nothing if there is not one of each.
    """
    yes_N = np.asarray(yes, bool)
    many, few = int(yes_N.sum()), int((~yes_N).sum())
    if not many or not few:
        return None
    return float((ranks(values)[yes_N].sum() - many * (many + 1) / 2) / (many * few))
