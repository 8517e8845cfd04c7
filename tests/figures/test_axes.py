"""Axes: round ticks, and labels that do not overlap."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.figures.axes import Axis, format_count, padded_axis, spread_labels


@given(st.floats(0.001, 1e9), st.floats(1.05, 1e6), st.booleans())
def test_ticks(low: float, ratio: float, log: bool) -> None:
    axis = Axis(low, low * ratio, 0, 100, log)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 12
    assert ticks == sorted(ticks)
    assert all(low * 0.999 <= tick <= low * ratio * 1.001 for tick in ticks)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0"), (950, "950"), (999.9, "1 k"), (1500, "1.5 k"), (2e7, "20 M"), (1.25e9, "1.25 G")],
)
def test_format_count(number: float, expected: str) -> None:
    assert format_count(number) == expected


@given(st.lists(st.floats(0, 400), max_size=12))
def test_labels_do_not_overlap_and_keep_their_order(places: list[float]) -> None:
    moved = spread_labels(places, 15)
    ordered = sorted(moved)
    assert all(b - a >= 15 - 1e-6 for a, b in itertools.pairwise(ordered))
    for (i, a), (j, b) in ((x, y) for x in enumerate(places) for y in enumerate(places)):
        if a < b:
            assert moved[i] < moved[j]


def test_labels_that_do_not_overlap_stay() -> None:
    assert spread_labels([100.0, 10.0, 50.0]) == [100.0, 10.0, 50.0]


@given(st.lists(st.floats(0.001, 1e6), min_size=1), st.booleans())
def test_a_padded_axis_has_room_for_all_values(values: list[float], log: bool) -> None:
    axis = padded_axis(values, 300, 0, log=log)
    assert all(0 < axis.position(value) < 300 for value in values)
