"""Horizontal bars in groups: amounts of the same kind, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.figures.axes import Axis, plain
from elmokit.figures.canvas import LETTER, WIDTH, color, cut, hover, legend, sheet, text

TOP, THICK, SPACE, RIGHT = 66, 15, 16, 70
MOST_LETTERS = 34


@dataclass(frozen=True)
class Bar:
    """An amount of one series."""

    series: str
    value: float
    spread: float = 0.0
    """How far it varies to both sides: a thin stroke."""


@dataclass(frozen=True)
class Group:
    """Bars that belong together."""

    name: str
    bars: Sequence[Bar]
    note: str = ""
    """In small letters below the name."""


@dataclass(frozen=True)
class Mark:
    """An upright line at a value to compare with."""

    name: str
    value: float


def bars(
    title: str,
    groups: Sequence[Group],
    *,
    low: float = 0.0,
    high: float | None = None,
    marks: Sequence[Mark] = (),
    across: str = "",
    digits: int = 1,
    fill: Sequence[int] | None = None,
) -> str:
    """The picture.

    Args:
        title: above all.
        groups: from top to bottom.
        low: where the bars begin; a picture whose bars do not begin at 0 says so in `across`.
        high: where they could end; the largest amount by default.
        marks: values to compare with.
        across: what the bars measure.
        digits: behind the point, of the amounts.
        fill: numbers of the colors of the series, in the order in which they come.
    """
    series = list(dict.fromkeys(bar.series for group in groups for bar in group.bars))
    colors = [color(number) for number in (fill or range(len(series)))][: len(series)]
    color_of = dict(zip(series, colors, strict=True))
    amounts = [bar.value + bar.spread for group in groups for bar in group.bars]
    most = max([*amounts, *(mark.value for mark in marks)], default=1.0)
    names = [cut(group.name, MOST_LETTERS) for group in groups]
    lengths = [float(len(name)) for name in names] + [0.92 * len(group.note) for group in groups]
    left = 36 + LETTER * max(lengths, default=0.0)
    top = TOP + (20 if marks else 0)
    axis = Axis(low, max(high if high is not None else most, low + 1e-9), left, WIDTH - RIGHT)
    bottom = top + sum(_height(group) for group in groups) - SPACE / 2
    parts = legend(series, left, 50, colors) if len(series) > 1 else []
    for tick in axis.ticks():
        parts.append(f'<path d="M{axis.at(tick):.1f} {top - 6}V{bottom}" class="grid"/>')
        parts.append(text(axis.at(tick), bottom + 16, plain(tick), "middle small"))
    for mark in marks:
        x = axis.at(mark.value)
        parts.append(f'<path d="M{x:.1f} {top - 8}V{bottom}" class="line line2 dashed thin"/>')
        kind = "end small" if x > (left + WIDTH) / 2 else "small"
        parts.append(text(x, top - 13, f"{mark.name} {mark.value:.{digits}f}", kind))
    y = float(top)
    for group, name in zip(groups, names, strict=True):
        middle = y + THICK * len(group.bars) / 2 + 4 - (7 if group.note else 0)
        parts.append(text(left - 14, middle, name, "end ink"))
        if group.note:
            parts.append(text(left - 14, middle + 14, group.note, "end small"))
        for bar in group.bars:
            parts += _bar(bar, axis, y, color_of[bar.series], digits)
            y += THICK
        y += _height(group) - THICK * len(group.bars)
    parts.append(text((left + WIDTH - RIGHT) / 2, bottom + 36, across, "middle"))
    return sheet(title, bottom + (48 if across else 28), parts)


def _height(group: Group) -> float:
    return max(THICK * len(group.bars), 28 if group.note else 0) + SPACE


def _bar(bar: Bar, axis: Axis, y: float, number: int, digits: int) -> list[str]:
    start, end = axis.at(max(axis.low, 0.0)), axis.at(max(bar.value, axis.low))
    left, right = min(start, end), max(start, end)
    shown = f"{bar.value:.{digits}f}"
    parts = [
        f'<rect x="{left:.1f}" y="{y + 1:.1f}" width="{max(right - left, 0.5):.1f}" '
        f'height="{THICK - 2}" rx="2" class="fill{number}">{hover(f"{bar.series}: {shown}")}</rect>'
    ]
    reach = right
    if bar.spread:
        low, reach = axis.at(bar.value - bar.spread), axis.at(bar.value + bar.spread)
        parts.append(f'<path d="M{low:.1f} {y + THICK / 2:.1f}H{reach:.1f}" class="whisker"/>')
    parts.append(text(reach + 6, y + 11.5, shown, "small ink halo"))
    return parts
