"""Bar charts: horizontal bars in groups, for amounts of the same kind side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.figures.axes import Axis, format_number
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

TOP, BAR_HEIGHT, GROUP_GAP, RIGHT = 66, 15, 16, 70
MAX_NAME_LENGTH = 34
"""Characters of a group's name that are shown."""


@dataclass(frozen=True)
class Bar:
    """One bar: the value of a series in a group."""

    series: str
    """Name of the series, which decides the color."""
    value: float
    """Length of the bar, in the unit of the x-axis."""
    spread: float = 0.0
    """How far the value varies to either side, drawn as a whisker; 0 for none."""


@dataclass(frozen=True)
class BarGroup:
    """Bars that are drawn together under one name."""

    name: str
    """Name to the left of the bars."""
    bars: Sequence[Bar]
    """Bars of the group, from top to bottom."""
    note: str = ""
    """Text in small letters below the name."""


@dataclass(frozen=True)
class ReferenceLine:
    """A dashed vertical line at a value that the bars are compared with."""

    name: str
    """Label above the line."""
    value: float
    """Where the line is, in the unit of the x-axis."""


def draw_bar_chart(
    title: str,
    groups: Sequence[BarGroup],
    *,
    low: float = 0.0,
    high: float | None = None,
    reference_lines: Sequence[ReferenceLine] = (),
    x_label: str = "",
    digits: int = 1,
    colors: Sequence[int] | None = None,
) -> str:
    """Return a bar chart as SVG text.

    Args:
        title: Title of the figure.
        groups: Groups of bars, from top to bottom.
        low: Value at which the x-axis begins; say so in `x_label` if it is not 0.
        high: Value at which the x-axis ends; the largest value by default.
        reference_lines: Values to compare the bars with.
        x_label: What the bars measure.
        digits: Digits after the decimal point of the values shown.
        colors: Color number of each series, in the order in which the series first appear.
    """
    series = list(dict.fromkeys(bar.series for group in groups for bar in group.bars))
    chosen = [series_color(number) for number in (colors or range(len(series)))][: len(series)]
    color_of = dict(zip(series, chosen, strict=True))
    amounts = [bar.value + bar.spread for group in groups for bar in group.bars]
    largest = max([*amounts, *(line.value for line in reference_lines)], default=1.0)
    names = [truncate(group.name, MAX_NAME_LENGTH) for group in groups]
    lengths = [float(len(name)) for name in names] + [0.92 * len(group.note) for group in groups]
    left = 36 + CHARACTER_WIDTH * max(lengths, default=0.0)
    top = TOP + (20 if reference_lines else 0)
    axis = Axis(low, max(high if high is not None else largest, low + 1e-9), left, WIDTH - RIGHT)
    bottom = top + sum(_group_height(group) for group in groups) - GROUP_GAP / 2
    parts = svg_legend(series, left, 50, chosen) if len(series) > 1 else []
    for tick in axis.ticks():
        x = axis.position(tick)
        parts.append(f'<path d="M{x:.1f} {top - 6}V{bottom}" class="grid"/>')
        parts.append(svg_text(x, bottom + 16, format_number(tick), "middle small"))
    for line in reference_lines:
        x = axis.position(line.value)
        parts.append(f'<path d="M{x:.1f} {top - 8}V{bottom}" class="line line2 dashed thin"/>')
        style = "end small" if x > (left + WIDTH) / 2 else "small"
        parts.append(svg_text(x, top - 13, f"{line.name} {line.value:.{digits}f}", style))
    y = float(top)
    for group, name in zip(groups, names, strict=True):
        middle = y + BAR_HEIGHT * len(group.bars) / 2 + 4 - (7 if group.note else 0)
        parts.append(svg_text(left - 14, middle, name, "end ink"))
        if group.note:
            parts.append(svg_text(left - 14, middle + 14, group.note, "end small"))
        for bar in group.bars:
            parts += _draw_bar(bar, axis, y, color_of[bar.series], digits)
            y += BAR_HEIGHT
        y += _group_height(group) - BAR_HEIGHT * len(group.bars)
    parts.append(svg_text((left + WIDTH - RIGHT) / 2, bottom + 36, x_label, "middle"))
    return svg_document(title, bottom + (48 if x_label else 28), parts)


def _group_height(group: BarGroup) -> float:
    return max(BAR_HEIGHT * len(group.bars), 28 if group.note else 0) + GROUP_GAP


def _draw_bar(bar: Bar, axis: Axis, y: float, color: int, digits: int) -> list[str]:
    start, end = axis.position(max(axis.low, 0.0)), axis.position(max(bar.value, axis.low))
    left, right = min(start, end), max(start, end)
    value = f"{bar.value:.{digits}f}"
    tooltip = svg_tooltip(f"{bar.series}: {value}")
    parts = [
        f'<rect x="{left:.1f}" y="{y + 1:.1f}" width="{max(right - left, 0.5):.1f}" '
        f'height="{BAR_HEIGHT - 2}" rx="2" class="fill{color}">{tooltip}</rect>'
    ]
    value_at = right
    if bar.spread:
        low = axis.position(bar.value - bar.spread)
        value_at = axis.position(bar.value + bar.spread)
        middle = y + BAR_HEIGHT / 2
        parts.append(f'<path d="M{low:.1f} {middle:.1f}H{value_at:.1f}" class="whisker"/>')
    parts.append(svg_text(value_at + 6, y + 11.5, value, "small ink halo"))
    return parts
