"""Points in a plane, in clouds of one color each; a mouse over a point shows what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.figures.axes import roomy
from elmokit.figures.canvas import WIDTH, color, cut, hover, legend, sheet, text

TOP, HEIGHT = 66, 520


@dataclass(frozen=True)
class Point:
    """A place."""

    x: float
    y: float
    name: str = ""
    """What a mouse over it shows."""
    label: str = ""
    """What stands beside it."""
    large: bool = False


@dataclass(frozen=True)
class Cloud:
    """Points of one kind."""

    name: str
    points: Sequence[Point]
    color: int | None = None


def points(title: str, clouds: Sequence[Cloud], *, note: str = "") -> str:
    """The picture; the axes have no numbers, since only nearness means something."""
    colors = [color(k if cloud.color is None else cloud.color) for k, cloud in enumerate(clouds)]
    parts = legend([cloud.name for cloud in clouds], 20, 50, colors)
    frame = f'<rect x="20" y="{TOP}" width="{WIDTH - 40}" height="{HEIGHT}" class="grid"/>'
    parts.append(frame)
    everything = [point for cloud in clouds for point in cloud.points]
    if everything:
        across = roomy((point.x for point in everything), 20, WIDTH - 20)
        up = roomy((point.y for point in everything), TOP + HEIGHT, TOP)
    for cloud, number in zip(clouds, colors, strict=True):
        for point in cloud.points:
            x, y = across.at(point.x), up.at(point.y)
            faint = "" if point.large else " faint"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{7 if point.large else 4.5}" '
                f'class="fill{number}{faint}">{hover(point.name)}</circle>'
            )
    for point in everything:
        if point.label:
            x, y = across.at(point.x), up.at(point.y)
            side, kind = (-9, "end small ink halo") if x > WIDTH * 0.6 else (9, "small ink halo")
            parts.append(text(x + side, y + 4, cut(point.label, 60), kind))
    if note:
        parts.append(text(20, TOP + HEIGHT + 20, note, "small"))
    return sheet(title, TOP + HEIGHT + (34 if note else 20), parts)
