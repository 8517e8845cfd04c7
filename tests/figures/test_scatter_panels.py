"""Scatter panels, read back as XML."""

from __future__ import annotations

from tests.figures.svg import elements, texts

from elmokit.figures import PanelItem, ScatterPanel, draw_scatter_panels


def test_labels_are_left_out_where_they_would_overlap() -> None:
    items = [PanelItem(f"name {k}", f"label {k}", "g") for k in range(60)]
    apart = [(float(k % 6), float(k // 6)) for k in range(60)]
    close = [(0.001 * k, 0.0) for k in range(60)]
    one = draw_scatter_panels("t", items, [ScatterPanel("apart", apart)])
    two = draw_scatter_panels("t", items, [ScatterPanel("close", close)])
    assert sum(text.startswith("label") for text in texts(one)) == 60
    assert 0 < sum(text.startswith("label") for text in texts(two)) < 60
    assert len(elements(two, "circle")) == 61, "all dots, and one of the legend"


def test_wide_characters_take_more_room() -> None:
    points = [(0.0, 0.0), (0.25, 0.0), (1.0, 1.0)]
    for label, shown in (("ab" * 7, 3), ("银行" * 7, 1)):
        items = [PanelItem("", label) for _ in points]
        svg = draw_scatter_panels("t", items, [ScatterPanel("p", points)])
        assert texts(svg).count(label) >= shown


def test_coincident_points_and_nothing() -> None:
    items = [PanelItem("a", "a"), PanelItem("b", "b")]
    svg = draw_scatter_panels("t", items, [ScatterPanel("same", [(1.0, 1.0)] * 2)], note="n")
    assert {"same", "n"} <= set(texts(svg)) and len(elements(svg, "circle")) == 2
    assert "t" in texts(draw_scatter_panels("t", [], [ScatterPanel("none", [])]))
