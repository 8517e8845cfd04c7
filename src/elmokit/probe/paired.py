"""Two ways to answer the same questions: by how much one is better, and how sure that is.

Shape letters: N questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Paired:
    """One against the other, question by question."""

    questions: int
    only_first: int
    """How many only the first got right."""
    only_second: int

    @property
    def difference(self) -> float:
        """The first's accuracy less the second's, -1 to 1."""
        return (self.only_first - self.only_second) / self.questions

    @property
    def standard_error(self) -> float:
        """Of the difference, as if the questions were independent of each other."""
        n = self.questions
        squares = self.only_first + self.only_second
        return math.sqrt(max(squares - (self.only_first - self.only_second) ** 2 / n, 0.0)) / n


def paired(first_N: BoolArray, second_N: BoolArray) -> Paired:
    """Compare which questions each got right; there must be one."""
    return Paired(len(first_N), int((first_N & ~second_N).sum()), int((second_N & ~first_N).sum()))
