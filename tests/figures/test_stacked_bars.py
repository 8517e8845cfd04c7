"""Stacked bars, read back as XML."""

from __future__ import annotations

import pytest
from tests.figures.svg import filled_elements, texts

from elmokit.figures import StackedBar, draw_stacked_bars


def test_a_whole_is_divided() -> None:
    svg = draw_stacked_bars(
        "w", [StackedBar("ner", [0.5, 0.3, 0.2], "γ 1.4")], ["characters", "1", "2"]
    )
    widths = [float(rect.get("width", "")) for rect in filled_elements(svg, "rect")]
    assert widths[0] == pytest.approx(2.5 * widths[2], rel=0.02)
    faint = ["faint" in (rect.get("class") or "") for rect in filled_elements(svg, "rect")]
    assert faint == [False, True, True], "less than an even part"
    assert {"0.50", "0.30", "0.20", "γ 1.4", "characters"} <= set(texts(svg))


def test_nothing_to_draw() -> None:
    assert "nothing" in texts(draw_stacked_bars("nothing", [], []))
