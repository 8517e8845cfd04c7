"""Units of the permutation test: which uses of a word stay together.

Two uses in one document are alike, because the document has a topic and an author. A test that
permutes single uses takes that for a difference between the texts. So whole documents are permuted,
or consecutive documents of a long text, or blocks of sentences where no documents are marked.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError
from elmokit.probe.change.targets import TextSize, UseLocation, UseSample

PermutationUnit = Literal["auto", "document", "block"]
"""What is permuted: every document (`"document"`), one of some parts of the text (`"block"`),
or what suits the number of documents (`"auto"`)."""
UNIT_NAMES: tuple[PermutationUnit, ...] = ("auto", "document", "block")

BLOCKS = 50
"""Parts that a text of many documents is divided into, at most. More would make the test hardly
more sensitive, and blind to what neighboring documents have in common."""
SENTENCE_BLOCKS = 12
"""Parts that a text without marked documents is divided into: so few that most documents, whatever
their length, are in one part, and enough for a small p-value."""
MIN_DOCUMENTS = 8
"""Documents from which on they are units by themselves: fewer could be assigned to two texts in so
few ways that no p-value would survive the correction for many words."""


def choose_unit(unit: PermutationUnit, text: TextSize) -> str:
    """Return what the units of a text are: `"documents"`, `"blocks of documents"` or `"blocks"`.

    Args:
        unit: What the user asked for.
        text: Size of the text.
    """
    if unit not in UNIT_NAMES:
        raise InputError(f"unit is {unit!r}; expected one of {', '.join(UNIT_NAMES)}")
    if unit == "document" or (unit == "auto" and MIN_DOCUMENTS <= text.documents <= BLOCKS):
        return "documents"
    return "blocks of documents" if text.documents > BLOCKS else "blocks"


def assign_units(sample: UseSample, unit: PermutationUnit) -> npt.NDArray[np.int64]:
    """Return the unit of each use: numbers from 0 on that grow with the text.

    Args:
        sample: Uses in the order of the text.
        unit: What the user asked for.
    """
    chosen = choose_unit(unit, sample.text)
    numbers = [_unit_number(location, sample.text, chosen) for location in sample.locations]
    _, units_N = np.unique(np.array(numbers, np.int64), return_inverse=True)
    return units_N.astype(np.int64)


def _unit_number(location: UseLocation, text: TextSize, unit: str) -> int:
    if unit == "documents":
        return location.document
    if unit == "blocks":
        return location.sentence * SENTENCE_BLOCKS // text.sentences
    # A document belongs to one block only, the one in which it begins.
    return location.document_start * BLOCKS // text.sentences


def split_into_halves(units_N: npt.NDArray[np.int64]) -> int | None:
    """Return how many uses are in the first half of a text, which ends between two units.

    None if a half would have fewer than two units.

    Args:
        units_N: The unit of each use, in the order of the text.
    """
    starts = [n for n in range(1, len(units_N)) if units_N[n] != units_N[n - 1]][1:-1]
    return min(starts, key=lambda n: abs(2 * n - len(units_N)), default=None)
