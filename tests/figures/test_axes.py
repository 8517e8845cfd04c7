"""Axes: round numbers, and names that do not lie on each other."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.figures.axes import Axis, apart, roomy, short


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
def test_short(number: float, expected: str) -> None:
    assert short(number) == expected


@given(st.lists(st.floats(0, 400), max_size=12))
def test_names_are_moved_apart_and_keep_their_order(places: list[float]) -> None:
    moved = apart(places, 15)
    ordered = sorted(moved)
    assert all(b - a >= 15 - 1e-6 for a, b in itertools.pairwise(ordered))
    for (i, a), (j, b) in ((x, y) for x in enumerate(places) for y in enumerate(places)):
        if a < b:
            assert moved[i] < moved[j]


def test_names_that_are_apart_stay() -> None:
    assert apart([100.0, 10.0, 50.0]) == [100.0, 10.0, 50.0]


@given(st.lists(st.floats(0.001, 1e6), min_size=1), st.booleans())
def test_an_axis_has_room_for_all(values: list[float], log: bool) -> None:
    axis = roomy(values, 300, 0, log=log)
    assert all(0 < axis.at(value) < 300 for value in values)
