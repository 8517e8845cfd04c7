"""Lines: what changes with something else, in panels one above the other that share an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elmokit.figures.axes import Axis, apart, plain, roomy, short
from elmokit.figures.canvas import WIDTH, color, hover, sheet, text

LEFT, TOP, GAP, BOTTOM = 64, 66, 44, 54
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line and its name, which stands at its end."""

    name: str
    points: Points
    color: int = 0
    dots: bool = True
    dashed: bool = False
    spread: Points = ()
    """For each point, from where to where it varies: an upright stroke."""


@dataclass(frozen=True)
class Panel:
    """Lines on one scale."""

    name: str
    lines: Sequence[Line]
    height: int = 260
    log: bool = False
    digits: int | None = None
    """Behind the point, of the number at a line's end; as many as it needs by default."""


def lines(
    title: str,
    panels: Sequence[Panel],
    *,
    across: str,
    log: bool = False,
    ticks: Mapping[float, str] | None = None,
    right: float = 150,
) -> str:
    """The picture.

    Args:
        title: above all.
        panels: from top to bottom.
        across: what the axis at the bottom counts.
        log: whether that axis is logarithmic.
        ticks: names of places on it; round numbers by default.
        right: room for the names of the lines.
    """
    values = [x for panel in panels for line in panel.lines for x, _ in line.points]
    height = TOP + sum(panel.height for panel in panels) + GAP * (len(panels) - 1) + BOTTOM
    if not values:
        return sheet(title, height, [text(WIDTH / 2, height / 2, "nothing noted yet", "middle")])
    end = WIDTH - right
    if log or ticks is not None:
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
        axis = Axis(low, high, LEFT + 14, end - 14, log)
    else:
        axis = Axis(0, max(max(values), 1e-9), LEFT, end)
    names = ticks if ticks is not None else {tick: short(tick) for tick in axis.ticks()}
    parts: list[str] = []
    top = TOP
    for panel in panels:
        parts += _panel(panel, axis, names, top, end)
        top += panel.height + GAP
    bottom = top - GAP
    parts += [text(axis.at(tick), bottom + 18, name, "middle") for tick, name in names.items()]
    parts.append(text((LEFT + end) / 2, height - 10, across, "middle"))
    return sheet(title, height, parts)


def _panel(
    panel: Panel, axis: Axis, ticks: Mapping[float, str], top: float, end: float
) -> list[str]:
    """A frame and its lines."""
    bottom = top + panel.height
    parts = [f'<path d="M{axis.at(tick):.1f} {top}V{bottom}" class="grid"/>' for tick in ticks]
    parts.append(text(LEFT, top - 10, panel.name, "ink"))
    there = [line for line in panel.lines if line.points]
    if not there:
        return [*parts, text((LEFT + end) / 2, (top + bottom) / 2, "none was measured", "middle")]
    values = [y for line in there for _, y in line.points]
    values += [y for line in there for pair in line.spread for y in pair]
    up = roomy(values, bottom, top, log=panel.log)
    for tick in up.ticks():
        parts.append(f'<path d="M{LEFT} {up.at(tick):.1f}H{end}" class="grid"/>')
        parts.append(text(LEFT - 8, up.at(tick) + 4, plain(tick), "end"))
    ends = apart([up.at(line.points[-1][1]) for line in there])
    for line, name_at in zip(there, ends, strict=True):
        parts += _line(line, axis, up)
        last = line.points[-1][1]
        shown = plain(last) if panel.digits is None else f"{last:.{panel.digits}f}"
        style = f"fill{color(line.color)}"
        parts.append(text(end + 10, name_at + 4, f"{line.name} {shown}", style))
    return parts


def _line(line: Line, axis: Axis, up: Axis) -> list[str]:
    number = color(line.color)
    places = [(axis.at(x), up.at(y)) for x, y in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    kinds = (" dashed" if line.dashed else "") + ("" if line.dots else " thin")
    parts = [
        f'<path d="M{x:.1f} {up.at(low):.1f}V{up.at(high):.1f}" class="line line{number} faint"/>'
        for (x, _), (low, high) in zip(places, line.spread, strict=False)
    ]
    parts.append(f'<path d="M{path}" class="line line{number}{kinds}"/>')
    if line.dots or len(places) == 1:
        for (x, y), (_, value) in zip(places, line.points, strict=True):
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" class="fill{number}">'
                f"{hover(f'{line.name}: {plain(value)}')}</circle>"
            )
    return parts
