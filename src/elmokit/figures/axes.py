"""Axes of a figure: where a value is drawn, which ticks it has, and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic scale from values to coordinates in the figure."""

    low: float
    """Value at the start of the axis."""
    high: float
    """Value at the end of the axis."""
    start: float
    """Coordinate at which `low` is drawn."""
    end: float
    """Coordinate at which `high` is drawn; may be smaller than `start`."""
    log: bool = False
    """Whether the scale is logarithmic."""

    def position(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return a handful of round values within the axis."""
        if not self.log:
            return _linear_ticks(self.low, self.high)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for mantissas in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
            ticks = [m * 10.0**d for d in decades for m in mantissas]
            ticks = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(ticks) >= 4:
                return ticks
        return _linear_ticks(self.low, self.high)


def padded_axis(values: Iterable[float], start: float, end: float, *, log: bool = False) -> Axis:
    """Return an axis with some padding beyond the smallest and the largest value.

    Args:
        values: Values that the axis must show; at least one.
        start: Coordinate at which the axis starts.
        end: Coordinate at which the axis ends.
        log: Whether the scale is logarithmic; all values must be positive then.
    """
    values = list(values)
    low, high = min(values), max(values)
    if log:
        factor = max((high / low) ** 0.06, 1.05)
        return Axis(low / factor, high * factor, start, end, log)
    padding = max(0.06 * (high - low), 0.02 * abs(high), 1e-3)
    return Axis(low - padding, high + padding, start, end)


def format_number(value: float) -> str:
    """Return a number as it is written at an axis or a line: four significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def format_count(number: float) -> str:
    """Return a short form of a count: 950, 1.5 k, 20 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def spread_labels(positions: list[float], gap: float = 15) -> list[float]:
    """Return label positions in the same order, moved so that no two labels overlap.

    Args:
        positions: Where the labels would best be.
        gap: Smallest distance between two labels.
    """
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    clusters: list[tuple[float, int]] = []  # center of labels that touch, and their number
    for i in order:
        center, count = positions[i], 1
        while clusters and clusters[-1][0] + gap * clusters[-1][1] / 2 > center - gap * count / 2:
            other_center, other_count = clusters.pop()
            both = other_count + count
            center, count = (other_center * other_count + center * count) / both, both
        clusters.append((center, count))
    moved = [
        center + gap * (k - (count - 1) / 2) for center, count in clusters for k in range(count)
    ]
    by_index = dict(zip(order, moved, strict=True))
    return [by_index[i] for i in range(len(positions))]


def _linear_ticks(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= max(m for m in (1, 2, 2.5, 5) if m * step <= (high - low) / 4)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]
