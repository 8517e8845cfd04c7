"""The picture that layer probes share: a group of bars for each layer, trained and untrained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmokit.figures import Bar, Group, Mark, bars
from elmokit.probe.results import layer_name

NETWORKS = ("trained", "untrained")


def layer_bars(
    title: str,
    layers: Sequence[str],
    values: Mapping[tuple[str, str], float],
    marks: Sequence[Mark] = (),
    unit: str = "% right",
) -> str:
    """Draw per cent by (network, layer), and what to compare them with."""
    groups = [
        Group(
            layer_name(layer), [Bar(n, values[n, layer]) for n in NETWORKS if (n, layer) in values]
        )
        for layer in layers
    ]
    axis = cut_axis([*values.values(), *(mark.value for mark in marks)], unit)
    return bars(title, groups, **axis, marks=marks, fill=[0, 2])


def cut_axis(values: Iterable[float], unit: str = "% right") -> dict[str, Any]:
    """From the ten below the least to that above the most: layers differ by a few in a hundred."""
    all_values = list(values)
    low = 10.0 * ((min(all_values) - 1) // 10)
    high = min(100.0, 10.0 * ((max(all_values) + 10) // 10))
    across = unit if low <= 0 else f"{unit} (the axis begins at {low:.0f})"
    return {"low": low, "high": high, "across": across}
