"""Paired comparison of two classifiers on the same questions, with a standard error.

Shape letters: N questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PairedComparison:
    """How often each of two classifiers was right where the other was wrong."""

    questions: int
    """Number of questions."""
    only_first: int
    """Number of questions that only the first classifier answered correctly."""
    only_second: int
    """Number of questions that only the second classifier answered correctly."""

    @property
    def difference(self) -> float:
        """Accuracy of the first classifier minus that of the second, from -1 to 1."""
        return (self.only_first - self.only_second) / self.questions

    @property
    def standard_error(self) -> float:
        """Standard error of the difference, as if the questions were independent."""
        n = self.questions
        squares = self.only_first + self.only_second
        return math.sqrt(max(squares - (self.only_first - self.only_second) ** 2 / n, 0.0)) / n


def compare_paired(first_N: BoolArray, second_N: BoolArray) -> PairedComparison:
    """Compare which questions each of two classifiers answered correctly; N must not be 0."""
    return PairedComparison(
        len(first_N), int((first_N & ~second_N).sum()), int((second_N & ~first_N).sum())
    )
