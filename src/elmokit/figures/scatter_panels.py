"""Scatter panels: the same items in several planes, one below the other, labeled where they fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from elmokit.figures.axes import Axis, padded_axis
from elmokit.figures.canvas import (
    WIDTH,
    series_color,
    svg_document,
    svg_legend,
    svg_text,
    svg_tooltip,
)

TOP, HEIGHT, COINCIDENT_HEIGHT, CAPTION, RADIUS = 66, 330, 64, 26, 5.5
GRAY = 2
"""Number of the color of dots that belong to several groups."""
LABEL_HEIGHT, LABEL_CHARACTER = 12.5, 6.0
"""Height of a label, and the average width of a character in it, in SVG units."""


@dataclass(frozen=True)
class PanelItem:
    """Something that is a dot in every panel."""

    name: str
    """Tooltip of its dots."""
    label: str = ""
    """Text beside its dots, in the panels where there is room."""
    group: str = ""
    """Name of its group, which decides the color."""


@dataclass(frozen=True)
class ScatterPanel:
    """One plane: where each item is in it."""

    title: str
    """Title above the panel."""
    points: Sequence[tuple[float, float]]
    """Coordinates of the items, in their order."""
    note: str = ""
    """Text beside the title."""


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def draw_scatter_panels(
    title: str, items: Sequence[PanelItem], panels: Sequence[ScatterPanel], *, note: str = ""
) -> str:
    """Return panels of dots as SVG text; their axes have no numbers, only distances mean something.

    Each dot has the attribute `data-item` with the number of its item, so that a page can connect
    the dots of an item. A panel in which all dots coincide is drawn small.

    Args:
        title: Title of the figure.
        items: What is drawn, once in each panel.
        panels: The panels, from top to bottom.
        note: Text below the panels.
    """
    groups = list(dict.fromkeys(item.group for item in items))
    color_of = {group: series_color(k) for k, group in enumerate(groups)}
    named = [group for group in groups if group]
    parts = svg_legend(named, 20, 50, [color_of[group] for group in named])
    y = float(TOP if named else TOP - 20)
    for panel in panels:
        parts.append(svg_text(20, y + 14, panel.title, "ink"))
        parts.append(svg_text(WIDTH - 20, y + 14, panel.note, "end small"))
        y += CAPTION
        coincide = len(set(panel.points)) < 2
        height = COINCIDENT_HEIGHT if coincide else HEIGHT
        parts.append(f'<rect x="20" y="{y}" width="{WIDTH - 40}" height="{height}" class="grid"/>')
        colors = [color_of[item.group] for item in items]
        if coincide:
            parts += _draw_coincident(items, colors, y)
        else:
            parts += _draw_panel(items, colors, panel.points, y)
        y += height + 12
    if note:
        parts.append(svg_text(20, y + 8, note, "small"))
    return svg_document(title, y + (22 if note else 8), parts)


def _draw_coincident(items: Sequence[PanelItem], colors: Sequence[int], top: float) -> list[str]:
    x, y = WIDTH / 2, top + COINCIDENT_HEIGHT / 2
    # One color for all of them: the last dot would hide the groups of the others.
    color = colors[0] if len(set(colors)) == 1 else GRAY
    return [_dot(k, item, color, x, y) for k, item in enumerate(items)]


def _draw_panel(
    items: Sequence[PanelItem],
    colors: Sequence[int],
    points: Sequence[tuple[float, float]],
    top: float,
) -> list[str]:
    x_axis = _axis([x for x, _ in points], 32, WIDTH - 32)
    y_axis = _axis([y for _, y in points], top + HEIGHT - 12, top + 12)
    places = [(x_axis.position(x), y_axis.position(y)) for x, y in points]
    parts = [
        _dot(k, item, color, *place)
        for k, (item, color, place) in enumerate(zip(items, colors, places, strict=True))
    ]
    room = _Box(22, top + 2, WIDTH - 22, top + HEIGHT - 2)
    for k, box in _place_labels([item.label for item in items], places, room).items():
        # Fonts differ in width, so a label is anchored where it meets its dot.
        x, style = box.left, "small ink halo"
        if box.right < places[k][0]:
            x, style = box.right, f"{style} end"
        elif box.left < places[k][0]:
            x, style = places[k][0], f"{style} middle"
        label = svg_text(x, box.bottom - 3, items[k].label, style)
        parts.append(f'<g data-item="{k}">{label}</g>')
    return parts


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    axis = padded_axis(values, start, end)
    if axis.high - axis.low < 1e-2 * (abs(axis.high) + 1e-6):  # all values are equal
        return Axis(axis.low - 1, axis.high + 1, start, end)
    return axis


def _dot(k: int, item: PanelItem, color: int, x: float, y: float) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" class="fill{color}" data-item="{k}">'
        f"{svg_tooltip(item.name)}</circle>"
    )


def _place_labels(
    labels: Sequence[str], places: Sequence[tuple[float, float]], room: _Box
) -> dict[int, _Box]:
    """Return where labels are drawn; those that would cover a dot or another label are left out.

    The items that are far from the others come first, since they are what a reader looks at.
    """
    taken = [_Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in places]
    middle = sum(x for x, _ in places) / len(places), sum(y for _, y in places) / len(places)
    order = sorted(
        range(len(places)),
        key=lambda k: -max(abs(places[k][0] - middle[0]) / 2, abs(places[k][1] - middle[1])),
    )
    placed: dict[int, _Box] = {}
    for k in order:
        if not labels[k]:
            continue
        x, y = places[k]
        width, half, gap = _label_width(labels[k]), LABEL_HEIGHT / 2, RADIUS + 3
        left, right, center = x - gap - width, x + gap, x - width / 2
        for corner in (
            (right, y - half),
            (left, y - half),
            (center, y - gap - LABEL_HEIGHT),
            (center, y + gap),
            (right, y - LABEL_HEIGHT - 2),
            (right, y + 2),
            (left, y - LABEL_HEIGHT - 2),
            (left, y + 2),
        ):
            box = _Box(*corner, corner[0] + width, corner[1] + LABEL_HEIGHT)
            inside = box.left >= room.left and box.right <= room.right
            inside = inside and box.top >= room.top and box.bottom <= room.bottom
            if inside and not any(map(box.overlaps, taken)):
                placed[k] = box
                taken.append(box)
                break
    return dict(sorted(placed.items()))


def _label_width(text: str) -> float:
    """Return about how wide a label is, in SVG units."""
    columns = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return LABEL_CHARACTER * columns
