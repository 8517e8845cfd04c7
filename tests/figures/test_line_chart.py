"""Line charts, read back as XML."""

from __future__ import annotations

import pytest
from tests.figures.svg import elements, texts

from elmokit.figures import Line, Panel, draw_line_chart


def test_lines_share_an_axis_and_have_their_names() -> None:
    one = Line("baseline", [(1, 10.0), (10, 20.0)], spread=[(9, 11), (19, 21)])
    two = Line("elmo", [(1, 30.0), (10, 35.0)], color=1)
    ticks = {1.0: "1 %", 10.0: "10 %"}
    svg = draw_line_chart(
        "t", [Panel("F1", [one, two], digits=1)], x_label="size", log=True, ticks=ticks
    )
    assert {"baseline 20.0", "elmo 35.0", "1 %", "10 %", "size"} <= set(texts(svg))
    dots = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in elements(svg, "circle")]
    assert dots[0][0] == dots[2][0] and dots[0][1] > dots[2][1]
    assert sum("faint" in (p.get("class") or "") for p in elements(svg, "path")) == 2


@pytest.mark.parametrize("log", [False, True])
def test_a_line_of_one_point(log: bool) -> None:
    svg = draw_line_chart(
        "t", [Panel("F1", [Line("a", [(1.0, 5.0)])])], x_label="x", log=log, ticks={1: "1"}
    )
    assert len(elements(svg, "circle")) == 1


def test_nothing_to_draw() -> None:
    assert "nothing" in texts(draw_line_chart("nothing", [Panel("x", [])], x_label="x"))
