"""Line charts: panels one above the other that share an x-axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elmokit.figures.axes import Axis, format_count, format_number, padded_axis, spread_labels
from elmokit.figures.canvas import WIDTH, series_color, svg_document, svg_text, svg_tooltip

LEFT, TOP, GAP, BOTTOM = 64, 66, 44, 54

Pairs = Sequence[tuple[float, float]]
"""Pairs of numbers: points as (x, y), or ranges as (low, high)."""


@dataclass(frozen=True)
class Line:
    """A line with its name at its right end."""

    name: str
    """Name of the line, shown with its last value."""
    points: Pairs
    """Points (x, y) of the line, from left to right."""
    color: int = 0
    """Number of the color."""
    dots: bool = True
    """Whether every point is marked by a dot."""
    dashed: bool = False
    """Whether the line is dashed."""
    spread: Pairs = ()
    """Range (low, high) of y at each point, drawn as a vertical stroke; empty for none."""


@dataclass(frozen=True)
class Panel:
    """Lines that share a y-axis."""

    name: str
    """Title of the panel."""
    lines: Sequence[Line]
    """Lines of the panel; those without points are left out."""
    height: int = 260
    """Height in SVG units."""
    log: bool = False
    """Whether the y-axis is logarithmic."""
    digits: int | None = None
    """Digits after the decimal point of the last values; as many as needed by default."""


def draw_line_chart(
    title: str,
    panels: Sequence[Panel],
    *,
    x_label: str,
    log: bool = False,
    ticks: Mapping[float, str] | None = None,
    right_margin: float = 150,
) -> str:
    """Return a line chart as SVG text.

    Args:
        title: Title of the figure.
        panels: Panels from top to bottom.
        x_label: What the x-axis counts.
        log: Whether the x-axis is logarithmic.
        ticks: Labels of the x-axis by their values; round numbers by default.
        right_margin: Room for the names of the lines, in SVG units.
    """
    values = [x for panel in panels for line in panel.lines for x, _ in line.points]
    height = TOP + sum(panel.height for panel in panels) + GAP * (len(panels) - 1) + BOTTOM
    if not values:
        empty = svg_text(WIDTH / 2, height / 2, "nothing noted yet", "middle")
        return svg_document(title, height, [empty])
    end = WIDTH - right_margin
    if log or ticks is not None:
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
        x_axis = Axis(low, high, LEFT + 14, end - 14, log)
    else:
        x_axis = Axis(0, max(max(values), 1e-9), LEFT, end)
    labels = ticks if ticks is not None else {tick: format_count(tick) for tick in x_axis.ticks()}
    parts: list[str] = []
    top = TOP
    for panel in panels:
        parts += _draw_panel(panel, x_axis, labels, top, end)
        top += panel.height + GAP
    bottom = top - GAP
    parts += [
        svg_text(x_axis.position(tick), bottom + 18, label, "middle")
        for tick, label in labels.items()
    ]
    parts.append(svg_text((LEFT + end) / 2, height - 10, x_label, "middle"))
    return svg_document(title, height, parts)


def _draw_panel(
    panel: Panel, x_axis: Axis, ticks: Mapping[float, str], top: float, end: float
) -> list[str]:
    bottom = top + panel.height
    parts = [
        f'<path d="M{x_axis.position(tick):.1f} {top}V{bottom}" class="grid"/>' for tick in ticks
    ]
    parts.append(svg_text(LEFT, top - 10, panel.name, "ink"))
    lines = [line for line in panel.lines if line.points]
    if not lines:
        empty = svg_text((LEFT + end) / 2, (top + bottom) / 2, "none was measured", "middle")
        return [*parts, empty]
    values = [y for line in lines for _, y in line.points]
    values += [y for line in lines for pair in line.spread for y in pair]
    y_axis = padded_axis(values, bottom, top, log=panel.log)
    for tick in y_axis.ticks():
        y = y_axis.position(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{end}" class="grid"/>')
        parts.append(svg_text(LEFT - 8, y + 4, format_number(tick), "end"))
    label_positions = spread_labels([y_axis.position(line.points[-1][1]) for line in lines])
    for line, label_y in zip(lines, label_positions, strict=True):
        parts += _draw_line(line, x_axis, y_axis)
        last = line.points[-1][1]
        value = format_number(last) if panel.digits is None else f"{last:.{panel.digits}f}"
        style = f"fill{series_color(line.color)}"
        parts.append(svg_text(end + 10, label_y + 4, f"{line.name} {value}", style))
    return parts


def _draw_line(line: Line, x_axis: Axis, y_axis: Axis) -> list[str]:
    color = series_color(line.color)
    positions = [(x_axis.position(x), y_axis.position(y)) for x, y in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in positions)
    style = (" dashed" if line.dashed else "") + ("" if line.dots else " thin")
    parts = [
        f'<path d="M{x:.1f} {y_axis.position(low):.1f}V{y_axis.position(high):.1f}" '
        f'class="line line{color} faint"/>'
        for (x, _), (low, high) in zip(positions, line.spread, strict=False)
    ]
    parts.append(f'<path d="M{path}" class="line line{color}{style}"/>')
    if line.dots or len(positions) == 1:
        for (x, y), (_, value) in zip(positions, line.points, strict=True):
            tooltip = svg_tooltip(f"{line.name}: {format_number(value)}")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" class="fill{color}">{tooltip}</circle>'
            )
    return parts
