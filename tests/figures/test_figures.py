"""Pictures, read back as XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from elmokit.figures import (
    Bar,
    Cloud,
    Division,
    Group,
    Line,
    Mark,
    Panel,
    Point,
    bars,
    lines,
    points,
    shares,
)
from elmokit.figures.canvas import WIDTH

NAME = "{http://www.w3.org/2000/svg}"
NASTY = "a <b> & \"c\" 'd'"


def of(svg: str, kind: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{NAME}{kind}"))


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in of(svg, "text")]


def filled(svg: str, kind: str) -> list[ElementTree.Element]:
    return [each for each in of(svg, kind) if (each.get("class") or "").startswith("fill")]


GROUPS = [
    Group("one", [Bar("trained", 50.0, 2.0), Bar("untrained", 25.0)]),
    Group(NASTY, [Bar("trained", 100.0), Bar("untrained", 0.0)], note="few words"),
]


def test_bars_are_as_long_as_their_amounts() -> None:
    svg = bars(NASTY, GROUPS, marks=[Mark("first sense", 75.0)], across="F1")
    wide = [float(rect.get("width", "")) for rect in filled(svg, "rect")]
    assert wide[0] == pytest.approx(2 * wide[1], abs=0.2)
    assert wide[2] == pytest.approx(4 * wide[1], abs=0.2) and wide[3] < 1
    found = texts(svg)
    for text in (NASTY, "trained", "untrained", "50.0", "few words", "first sense 75.0", "F1"):
        assert text in found


def test_bars_from_below_zero_and_from_above_it() -> None:
    svg = bars("x", [Group("a", [Bar("s", -1.0)]), Group("b", [Bar("s", 2.0)])], low=-2.0)
    one, two = filled(svg, "rect")
    zero = float(two.get("x", ""))
    assert float(one.get("x", "")) + float(one.get("width", "")) == pytest.approx(zero, abs=0.2)
    assert float(two.get("width", "")) == pytest.approx(2 * float(one.get("width", "")), abs=0.2)
    svg = bars("x", [Group("a", [Bar("s", 85.0)]), Group("b", [Bar("s", 90.0)])], low=80.0)
    one, two = filled(svg, "rect")
    assert float(two.get("width", "")) == pytest.approx(2 * float(one.get("width", "")), abs=0.2)


def test_nothing_is_drawn_beside_the_sheet() -> None:
    many = [Group(f"a rather long name of a group {i}", [Bar("s", 10.0**i)]) for i in range(9)]
    svg = bars("x", many, digits=0)
    for rect in filled(svg, "rect"):
        assert float(rect.get("x", "")) + float(rect.get("width", "")) <= WIDTH


def test_a_whole_is_divided() -> None:
    svg = shares("w", [Division("ner", [0.5, 0.3, 0.2], "γ 1.4")], ["characters", "1", "2"])
    wide = [float(rect.get("width", "")) for rect in filled(svg, "rect")]
    assert wide[0] == pytest.approx(2.5 * wide[2], rel=0.02)
    faint = ["faint" in (rect.get("class") or "") for rect in filled(svg, "rect")]
    assert faint == [False, True, True], "less than an even part"
    assert {"0.50", "0.30", "0.20", "γ 1.4", "characters"} <= set(texts(svg))


def test_lines_share_an_axis_and_have_their_names() -> None:
    one = Line("baseline", [(1, 10.0), (10, 20.0)], spread=[(9, 11), (19, 21)])
    two = Line("elmo", [(1, 30.0), (10, 35.0)], color=1)
    ticks = {1.0: "1 %", 10.0: "10 %"}
    svg = lines("t", [Panel("F1", [one, two], digits=1)], across="size", log=True, ticks=ticks)
    assert {"baseline 20.0", "elmo 35.0", "1 %", "10 %", "size"} <= set(texts(svg))
    dots = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in of(svg, "circle")]
    assert dots[0][0] == dots[2][0] and dots[0][1] > dots[2][1]
    assert sum("faint" in (p.get("class") or "") for p in of(svg, "path")) == 2


@pytest.mark.parametrize("log", [False, True])
def test_a_line_of_one_point(log: bool) -> None:
    svg = lines("t", [Panel("F1", [Line("a", [(1.0, 5.0)])])], across="x", log=log, ticks={1: "1"})
    assert len(of(svg, "circle")) == 1


def test_points() -> None:
    clouds = [
        Cloud("then", [Point(0, 0, NASTY), Point(1, 1)]),
        Cloud("now", [Point(2, 0, "b", "query", large=True)], color=3),
    ]
    svg = points("p", clouds, note="two components")
    assert {"then", "now", "query", "two components"} <= set(texts(svg))
    assert NASTY in [title.text for title in of(svg, "title")]
    dots = [c for c in of(svg, "circle") if c.get("r") in ("4.5", "7")]
    x = [float(dot.get("cx", "")) for dot in dots]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert dots[2].get("class") == "fill3"


@pytest.mark.parametrize(
    "svg",
    [
        bars("nothing", []),
        shares("nothing", [], []),
        lines("nothing", [Panel("x", [])], across="x"),
        points("nothing", [Cloud("none", [])]),
    ],
)
def test_nothing_to_draw(svg: str) -> None:
    assert "nothing" in texts(svg)
