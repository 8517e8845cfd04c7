"""The figure that layer probes share: one group of bars per layer, trained and untrained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmokit.figures import Bar, BarGroup, ReferenceLine, draw_bar_chart
from elmokit.probe.results import layer_name

NETWORKS = ("trained", "untrained")
"""The networks that every layer probe compares."""


def layer_bars(
    title: str,
    layers: Sequence[str],
    values: Mapping[tuple[str, str], float],
    marks: Sequence[ReferenceLine] = (),
    unit: str = "accuracy in %",
) -> str:
    """Return the figure as SVG.

    Args:
        title: Title of the figure.
        layers: Layers in the order of their groups.
        values: Value of each (network, layer) on a scale to 100; missing ones are left out.
        marks: Baselines, drawn as lines across the groups.
        unit: Label of the axis.
    """
    groups = [
        BarGroup(
            layer_name(layer), [Bar(n, values[n, layer]) for n in NETWORKS if (n, layer) in values]
        )
        for layer in layers
    ]
    axis = zoomed_axis([*values.values(), *(mark.value for mark in marks)], unit)
    return draw_bar_chart(title, groups, **axis, reference_lines=marks, colors=[0, 2])


def zoomed_axis(values: Iterable[float], unit: str = "accuracy in %") -> dict[str, Any]:
    """Return axis arguments for `draw_bar_chart` that cover the values in steps of ten.

    Layers differ by a few percent only, which an axis from zero would hide.
    """
    all_values = list(values)
    low = 10.0 * ((min(all_values) - 1) // 10)
    high = min(100.0, 10.0 * ((max(all_values) + 10) // 10))
    x_label = unit if low <= 0 else f"{unit} (the axis begins at {low:.0f})"
    return {"low": low, "high": high, "x_label": x_label}
