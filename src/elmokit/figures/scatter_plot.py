"""Scatter plots: points in a plane, in groups of one color each, with tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.figures.axes import padded_axis
from elmokit.figures.canvas import (
    WIDTH,
    series_color,
    svg_document,
    svg_legend,
    svg_text,
    svg_tooltip,
    truncate,
)

TOP, HEIGHT = 66, 520
MAX_LABEL_LENGTH = 60
"""Characters of a point's label that are shown."""


@dataclass(frozen=True)
class Point:
    """A point of a scatter plot."""

    x: float
    y: float
    name: str = ""
    """Tooltip of the point."""
    label: str = ""
    """Text beside the point."""
    large: bool = False
    """Whether the point is emphasized."""


@dataclass(frozen=True)
class PointGroup:
    """Points of one color, with a name in the legend."""

    name: str
    """Name in the legend."""
    points: Sequence[Point]
    """Points of the group; there may be none."""
    color: int | None = None
    """Number of the color; by default the number of the group."""


def draw_scatter_plot(title: str, groups: Sequence[PointGroup], *, note: str = "") -> str:
    """Return a scatter plot as SVG text; its axes have no numbers, only distances mean something.

    Args:
        title: Title of the figure.
        groups: Groups of points; later ones are drawn above earlier ones.
        note: Text below the plot.
    """
    colors = [
        series_color(k if group.color is None else group.color) for k, group in enumerate(groups)
    ]
    parts = svg_legend([group.name for group in groups], 20, 50, colors)
    parts.append(f'<rect x="20" y="{TOP}" width="{WIDTH - 40}" height="{HEIGHT}" class="grid"/>')
    points = [point for group in groups for point in group.points]
    if points:
        x_axis = padded_axis((point.x for point in points), 20, WIDTH - 20)
        y_axis = padded_axis((point.y for point in points), TOP + HEIGHT, TOP)
    for group, color in zip(groups, colors, strict=True):
        for point in group.points:
            x, y = x_axis.position(point.x), y_axis.position(point.y)
            faint = "" if point.large else " faint"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{7 if point.large else 4.5}" '
                f'class="fill{color}{faint}">{svg_tooltip(point.name)}</circle>'
            )
    for point in points:
        if point.label:
            x, y = x_axis.position(point.x), y_axis.position(point.y)
            offset, style = (-9, "end small ink halo") if x > WIDTH * 0.6 else (9, "small ink halo")
            label = truncate(point.label, MAX_LABEL_LENGTH)
            parts.append(svg_text(x + offset, y + 4, label, style))
    if note:
        parts.append(svg_text(20, TOP + HEIGHT + 20, note, "small"))
    return svg_document(title, TOP + HEIGHT + (34 if note else 20), parts)
