"""Bar charts, read back as XML."""

from __future__ import annotations

import pytest
from tests.figures.svg import MARKUP, filled_elements, texts

from elmokit.figures import Bar, BarGroup, ReferenceLine, draw_bar_chart
from elmokit.figures.canvas import WIDTH

GROUPS = [
    BarGroup("one", [Bar("trained", 50.0, 2.0), Bar("untrained", 25.0)]),
    BarGroup(MARKUP, [Bar("trained", 100.0), Bar("untrained", 0.0)], note="few words"),
]


def test_bar_lengths_are_proportional_to_values() -> None:
    svg = draw_bar_chart(
        MARKUP, GROUPS, reference_lines=[ReferenceLine("first sense", 75.0)], x_label="F1"
    )
    widths = [float(rect.get("width", "")) for rect in filled_elements(svg, "rect")]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[2] == pytest.approx(4 * widths[1], abs=0.2) and widths[3] < 1
    found = texts(svg)
    for text in (MARKUP, "trained", "untrained", "50.0", "few words", "first sense 75.0", "F1"):
        assert text in found


def test_an_axis_that_does_not_begin_at_zero() -> None:
    svg = draw_bar_chart(
        "x", [BarGroup("a", [Bar("s", -1.0)]), BarGroup("b", [Bar("s", 2.0)])], low=-2.0
    )
    one, two = filled_elements(svg, "rect")
    zero = float(two.get("x", ""))
    assert float(one.get("x", "")) + float(one.get("width", "")) == pytest.approx(zero, abs=0.2)
    assert float(two.get("width", "")) == pytest.approx(2 * float(one.get("width", "")), abs=0.2)
    svg = draw_bar_chart(
        "x", [BarGroup("a", [Bar("s", 85.0)]), BarGroup("b", [Bar("s", 90.0)])], low=80.0
    )
    one, two = filled_elements(svg, "rect")
    assert float(two.get("width", "")) == pytest.approx(2 * float(one.get("width", "")), abs=0.2)


def test_nothing_is_drawn_outside_the_figure() -> None:
    many = [BarGroup(f"a rather long name of a group {i}", [Bar("s", 10.0**i)]) for i in range(9)]
    svg = draw_bar_chart("x", many, digits=0)
    for rect in filled_elements(svg, "rect"):
        assert float(rect.get("x", "")) + float(rect.get("width", "")) <= WIDTH


def test_nothing_to_draw() -> None:
    assert "nothing" in texts(draw_bar_chart("nothing", []))
