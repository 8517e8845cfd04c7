from __future__ import annotations

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.probe.change.targets import TextSize, UseLocation, UseSample, parse_target, sample_uses
from elmokit.probe.change.units import BLOCKS, assign_units, choose_unit, split_into_halves


def test_documents_end_with_an_empty_sentence() -> None:
    text = [[], ["play"], ["no"], [], [], ["play", "play"], [], ["none"], [], ["a", "play"]]
    (found,) = sample_uses(text, [parse_target("play")], 10, "0")
    assert found.text == TextSize(documents=4, sentences=5)
    assert found.locations == [
        UseLocation(0, 0, 0),
        UseLocation(1, 2, 2),
        UseLocation(1, 2, 2),
        UseLocation(3, 4, 4),
    ]
    assert assign_units(found, "document").tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (1, "blocks"),
        (7, "blocks"),
        (8, "documents"),
        (50, "documents"),
        (51, "blocks of documents"),
    ],
)
def test_what_is_permuted(documents: int, expected: str) -> None:
    assert choose_unit("auto", TextSize(documents, 1000)) == expected
    assert choose_unit("document", TextSize(documents, 1000)) == "documents"


def test_an_unknown_unit() -> None:
    with pytest.raises(InputError, match="unit is 'page'; expected one of auto, document, block"):
        choose_unit("page", TextSize(1, 1))  # type: ignore[arg-type]


def test_blocks_have_whole_documents() -> None:
    sizes = np.random.default_rng(0).integers(1, 30, 200)
    text = [words for size in sizes for words in [*([["play"]] * size), []]]
    numbered = [[*words, str(k)] if words else [] for k, words in enumerate(text)]
    (found,) = sample_uses(numbered, [parse_target("play")], 10_000, "0")
    units = assign_units(found, "auto")
    documents = np.array([location.document for location in found.locations])
    assert 40 <= units.max() + 1 <= BLOCKS
    assert all(len(set(units[documents == k])) == 1 for k in range(200))
    assert (np.diff(units) >= 0).all()
    assert (np.bincount(units) < 3 * len(units) / BLOCKS).all()


def test_halves_end_between_units() -> None:
    assert split_into_halves(np.array([0, 0, 1, 1, 2, 2, 3, 3])) == 4
    assert split_into_halves(np.array([0, 1, 2, 2, 2, 2, 2, 3])) == 2
    assert split_into_halves(np.array([0, 0, 1, 2])) is None, "a half of one unit has no spread"
    assert split_into_halves(np.array([0])) is None
    sample = UseSample(1, TextSize(1, 4), [(["play"], 0)], [UseLocation(0, 0, 3)])
    assert assign_units(sample, "block").tolist() == [0]
