"""Stacked bars: how wholes are divided into parts, one bar of the same length for each whole.

The paper draws the weights of the layers this way: parts smaller than an even share are faint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.figures.canvas import (
    CHARACTER_WIDTH,
    WIDTH,
    series_color,
    svg_document,
    svg_legend,
    svg_text,
    svg_tooltip,
    truncate,
)

TOP, BAR_HEIGHT, GAP, RIGHT = 66, 24, 10, 90
MAX_NAME_LENGTH = 40
"""Characters of a bar's name that are shown."""
PART_COLORS = (2, 0, 3, 1, 4, 5)
"""Color numbers of the parts: the first is gray, the layer of a biLM that has no context."""


@dataclass(frozen=True)
class StackedBar:
    """A whole and its parts."""

    name: str
    """Name to the left of the bar."""
    parts: Sequence[float]
    """Sizes of the parts, which add up to 1."""
    note: str = ""
    """Text to the right of the bar."""


def draw_stacked_bars(title: str, stacked_bars: Sequence[StackedBar], names: Sequence[str]) -> str:
    """Return stacked bars as SVG text.

    Args:
        title: Title of the figure.
        stacked_bars: Bars from top to bottom, all with the same number of parts.
        names: Names of the parts, for the legend.
    """
    labels = [truncate(bar.name, MAX_NAME_LENGTH) for bar in stacked_bars]
    left = 36 + CHARACTER_WIDTH * max((len(label) for label in labels), default=0)
    width = WIDTH - RIGHT - left
    colors = [PART_COLORS[series_color(number)] for number in range(len(names))]
    parts = svg_legend(names, left, 50, colors)
    y = float(TOP)
    for bar, label in zip(stacked_bars, labels, strict=True):
        parts.append(svg_text(left - 14, y + 16, label, "end ink"))
        x = left
        for number, part in enumerate(bar.parts):
            faint = " faint" if part < 1 / len(bar.parts) else ""
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(width * part - 1.5, 0.5):.1f}" '
                f'height="{BAR_HEIGHT}" rx="2" class="fill{colors[number]}{faint}">'
                f"{svg_tooltip(f'{names[number]}: {part:.3f}')}</rect>"
            )
            if width * part > 34:
                style = "middle small " + ("ink" if faint else "on")
                parts.append(svg_text(x + width * part / 2, y + 16, f"{part:.2f}", style))
            x += width * part
        parts.append(svg_text(WIDTH - RIGHT + 10, y + 16, bar.note))
        y += BAR_HEIGHT + GAP
    return svg_document(title, y + 14, parts)
