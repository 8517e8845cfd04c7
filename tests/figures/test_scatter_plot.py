"""Scatter plots, read back as XML."""

from __future__ import annotations

import pytest
from tests.figures.svg import MARKUP, elements, texts

from elmokit.figures import Point, PointGroup, draw_scatter_plot


def test_points() -> None:
    groups = [
        PointGroup("then", [Point(0, 0, MARKUP), Point(1, 1)]),
        PointGroup("now", [Point(2, 0, "b", "query", large=True)], color=3),
    ]
    svg = draw_scatter_plot("p", groups, note="two components")
    assert {"then", "now", "query", "two components"} <= set(texts(svg))
    assert MARKUP in [title.text for title in elements(svg, "title")]
    dots = [c for c in elements(svg, "circle") if c.get("r") in ("4.5", "7")]
    x = [float(dot.get("cx", "")) for dot in dots]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert dots[2].get("class") == "fill3"


def test_nothing_to_draw() -> None:
    assert "nothing" in texts(draw_scatter_plot("nothing", [PointGroup("none", [])]))
