"""Where a number lies on the sheet, and which round numbers stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """From `low`, drawn at `start`, to `high`, drawn at `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
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


def roomy(values: Iterable[float], start: float, end: float, *, log: bool = False) -> Axis:
    """An axis with some room beyond all values; there must be one."""
    found = list(values)
    low, high = min(found), max(found)
    if log:
        room = max((high / low) ** 0.06, 1.05)
        return Axis(low / room, high * room, start, end, log)
    room = max(0.06 * (high - low), 0.02 * abs(high), 1e-3)
    return Axis(low - room, high + room, start, end)


def plain(value: float) -> str:
    """A number beside an axis or a line."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def short(number: float) -> str:
    """A count for a person: 950, 1.5 k, 20 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def apart(places: list[float], gap: float = 15) -> list[float]:
    """The same places in the same order, moved where names would lie on each other."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[tuple[float, int]] = []  # the middle of names that touch, and how many they are
    for i in order:
        middle, count = places[i], 1
        while groups and groups[-1][0] + gap * groups[-1][1] / 2 > middle - gap * count / 2:
            before, some = groups.pop()
            middle, count = (before * some + middle * count) / (some + count), some + count
        groups.append((middle, count))
    moved = [middle + gap * (k - (count - 1) / 2) for middle, count in groups for k in range(count)]
    found = dict(zip(order, moved, strict=True))
    return [found[i] for i in range(len(places))]


def _even(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= max(m for m in (1, 2, 2.5, 5) if m * step <= (high - low) / 4)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]
