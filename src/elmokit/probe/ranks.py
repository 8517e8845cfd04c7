"""Statistics of ranks: Spearman's correlation and the area under the ROC curve.

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
    """Return the rank of each number, from 1 for the smallest; equal numbers share their mean."""
    _, which_N, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    mean = np.cumsum(counts) - (counts - 1) / 2
    ranks_N: Array = mean[which_N]
    return ranks_N


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Return Spearman's rank correlation, -1 to 1; None if all numbers of one side are equal."""
    a_N, b_N = (each - each.mean() for each in (ranks(first), ranks(second)))
    length = math.sqrt(float(a_N @ a_N) * float(b_N @ b_N))
    return float(a_N @ b_N) / length if length else None


def spearman_error(correlation: float, count: int) -> float | None:
    """Return the standard error of Spearman's correlation; None for fewer than 4 numbers.

    The formula is that of Bonett and Wright (2000).
    """
    if count < 4:
        return None
    return (1 - correlation**2) * math.sqrt((1 + correlation**2 / 2) / (count - 3))


def area_under_curve(values: Sequence[float] | Array, positive: Sequence[bool]) -> float | None:
    """Return the area under the ROC curve; None unless there are both positives and negatives.

    It is how often a positive has a larger number than a negative, equal numbers counting half.
    """
    positive_N = np.asarray(positive, bool)
    positives, negatives = int(positive_N.sum()), int((~positive_N).sum())
    if not positives or not negatives:
        return None
    rank_sum = ranks(values)[positive_N].sum()
    return float((rank_sum - positives * (positives + 1) / 2) / (positives * negatives))
