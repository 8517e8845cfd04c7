"""The picture of a run: held-out perplexity and training loss by words read, as SVG.

Follows the reader's choice of light or dark. Draws what was noted and computes nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

Points = list[tuple[float, float]]

WIDTH, LEFT, RIGHT = 860, 64, 130
UPPER, LOWER = (64, 330), (374, 494)
"""Top and bottom of the two panels."""
HEIGHT = 548
MOST_POINTS = 400
"""Of a line; more are averaged, since nobody could see them."""

_LIGHT = {
    ".paper": "fill:#fff",
    "text": "fill:#5b6570",
    ".ink": "fill:#222",
    ".grid": "stroke:#e4e8ec",
    ".one": "stroke:#2f6fb3",
    "circle.one,text.one": "fill:#2f6fb3",
    ".two": "stroke:#c2820f",
    "circle.two,text.two": "fill:#c2820f",
    ".three": "stroke:#6b7785",
    "circle.three,text.three": "fill:#6b7785",
}
_DARK = {
    ".paper": "fill:#15191e",
    "text": "fill:#9aa5b1",
    ".ink": "fill:#e8ebee",
    ".grid": "stroke:#2b323a",
    ".one": "stroke:#7fb2e5",
    "circle.one,text.one": "fill:#7fb2e5",
    ".two": "stroke:#e0b04d",
    "circle.two,text.two": "fill:#e0b04d",
    ".three": "stroke:#9aa5b1",
    "circle.three,text.three": "fill:#9aa5b1",
}
_SHAPE = {
    ".title": "font-size:16px",
    ".y": "text-anchor:end",
    ".x": "text-anchor:middle",
    ".line": "fill:none;stroke-width:2;stroke-linejoin:round",
    ".thin": "stroke-width:1.3",
    "text.one,text.two,text.three": "stroke:none",
}


def _style() -> str:
    """Plain rules, since not every viewer knows variables."""
    light, dark, shape = (
        "".join(f"{what}{{{how}}}" for what, how in rules.items())
        for rules in (_LIGHT, _DARK, _SHAPE)
    )
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}{shape}"


def draw_curve(metrics: Iterable[dict[str, Any]], path: Path, title: str = "Training") -> None:
    """Write the picture of the lines that `metrics.py` wrote; there may be none."""
    lines = list(metrics)
    stage = path.with_name(f".{path.name}")
    stage.write_text(_picture(lines, title), encoding="utf-8")
    os.replace(stage, path)


def short(number: float) -> str:
    """A count for a person: 950, 1.5 k, 20 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def _picture(lines: Sequence[dict[str, Any]], title: str) -> str:
    forward, backward = (_points(lines, name) for name in ("forward", "backward"))
    loss = _thinned(_points(lines, "loss"))
    last = max((x for points in (forward, backward, loss) for x, _ in points), default=0.0)
    parts = [f'<text x="{LEFT}" y="30" class="title ink">{escape(title)}</text>']
    if last:
        across = _Axis(0, last, LEFT, WIDTH - RIGHT)
        parts += _upright(across)
        both = [("one", "forward", forward), ("two", "backward", backward)]
        parts += _panel(UPPER, across, "held-out perplexity, full softmax", both, log=True)
        one = [("three", "loss", loss)]
        parts += _panel(LOWER, across, "training loss, nats a word", one, log=False)
        parts.append(
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" class="x">words read</text>'
        )
    else:
        parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT / 2}" class="x">nothing noted yet</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<style>{_style()}</style><rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def _points(lines: Sequence[dict[str, Any]], name: str) -> Points:
    """What was noted under a name, by words read."""
    found: list[tuple[Any, Any]] = [(line.get("tokens"), line.get(name)) for line in lines]
    return [(float(x), float(y)) for x, y in found if _finite(x) and _finite(y)]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _thinned(points: Points) -> Points:
    """Means of neighbours."""
    size = -(-len(points) // MOST_POINTS) or 1
    parts = (points[i : i + size] for i in range(0, len(points), size))
    return [(part[-1][0], math.fsum(y for _, y in part) / len(part)) for part in parts]


# -- axes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """Where a number lies on the paper."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        low, high, value = (
            (math.log(v) for v in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers, a handful."""
        if not self.log:
            return _even(self.low, self.high)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for mantissas in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
            found = [m * 10.0**d for d in decades for m in mantissas]
            found = [tick for tick in found if self.low <= tick <= self.high]
            if len(found) >= 4:
                return found
        return _even(self.low, self.high)


def _even(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= max(m for m in (1, 2, 2.5, 5) if m * step <= (high - low) / 4)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _vertical(lines: Sequence[Points], panel: tuple[int, int], log: bool) -> _Axis:
    """An axis with room for all points, its low end at the bottom."""
    values = [y for points in lines for _, y in points]
    low, high = min(values), max(values)
    if log:
        room = max((high / low) ** 0.06, 1.05)
        low, high = low / room, high * room
    else:
        room = max(0.06 * (high - low), 0.02 * abs(high), 1e-3)
        low, high = low - room, high + room
    return _Axis(low, high, panel[1], panel[0], log)


# -- parts of the picture ------------------------------------------------------------------------


def _upright(across: _Axis) -> list[str]:
    """Lines at numbers of words, through both panels."""
    parts = []
    for tick in across.ticks():
        x = across.at(tick)
        for top, bottom in (UPPER, LOWER):
            parts.append(f'<path d="M{x:.1f} {top}V{bottom}" class="grid"/>')
        parts.append(f'<text x="{x:.1f}" y="{LOWER[1] + 18}" class="x">{short(tick)}</text>')
    return parts


def _panel(
    panel: tuple[int, int],
    across: _Axis,
    name: str,
    lines: Sequence[tuple[str, str, Points]],
    *,
    log: bool,
) -> list[str]:
    """A frame and its lines: the style of each, its name and its points."""
    parts = [f'<text x="{LEFT}" y="{panel[0] - 10}" class="ink">{name}</text>']
    there = [line for line in lines if line[2]]
    if not there:
        x, y = (LEFT + WIDTH - RIGHT) / 2, sum(panel) / 2
        return [*parts, f'<text x="{x}" y="{y}" class="x">none was measured</text>']
    up = _vertical([points for *_, points in there], panel, log)
    for tick in up.ticks():
        y = up.at(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="y">{_plain(tick)}</text>')
    ends = _apart([up.at(points[-1][1]) for *_, points in there])
    for (style, label, points), end in zip(there, ends, strict=True):
        places = [f"{across.at(x):.1f} {up.at(y):.1f}" for x, y in points]
        thin = "" if log else " thin"
        parts.append(f'<path d="M{"L".join(places)}" class="line {style}{thin}"/>')
        for place in places if log or len(places) == 1 else []:
            left, top = place.split()
            parts.append(f'<circle cx="{left}" cy="{top}" r="3" class="{style}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT + 10}" y="{end + 4:.1f}" class="{style}">'
            f"{label} {_plain(points[-1][1])}</text>"
        )
    return parts


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _apart(places: list[float], gap: float = 15) -> list[float]:
    """The same places, moved where names would lie on each other."""
    if len(places) < 2 or abs(places[0] - places[1]) >= gap:
        return places
    middle = sum(places) / 2
    above = places[0] <= places[1]
    return [middle - gap / 2, middle + gap / 2] if above else [middle + gap / 2, middle - gap / 2]
