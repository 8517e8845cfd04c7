"""The training curve of a run as SVG: held-out perplexity and training loss by words read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from elmokit.figures import Line, Panel, draw_line_chart
from elmokit.storage import write_text

Points = list[tuple[float, float]]

MAX_POINTS = 400
"""Most points per line; more are averaged, since nobody could tell them apart."""


def draw_curve(metrics: Iterable[dict[str, Any]], path: Path, title: str = "Training") -> None:
    """Write the training curve of some lines of metrics, possibly none, to a file."""
    write_text(path, render_curve(list(metrics), title))


def render_curve(metrics: Sequence[dict[str, Any]], title: str) -> str:
    """Return the training curve of some lines of metrics as SVG."""
    perplexity = [
        Line(name, _points(metrics, name), color)
        for color, name in enumerate(("forward", "backward"))
    ]
    loss = Line("loss", _averaged(_points(metrics, "loss")), color=2, dots=False)
    panels = [
        Panel("held-out perplexity, full softmax", perplexity, height=266, log=True),
        Panel("training loss, nats per word", [loss], height=120),
    ]
    return draw_line_chart(title, panels, x_label="words read", right_margin=130)


def thin_metrics(metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return fewer lines of metrics that give the same curve: all perplexities, averaged losses."""
    evaluations = [
        {name: line[name] for name in ("tokens", "forward", "backward")}
        for line in metrics
        if all(_is_finite(line.get(name)) for name in ("tokens", "forward", "backward"))
    ]
    losses = _averaged(_points(metrics, "loss"))
    return sorted(
        [*evaluations, *({"tokens": x, "loss": round(y, 4)} for x, y in losses)],
        key=lambda line: line["tokens"],
    )


def _points(metrics: Sequence[dict[str, Any]], name: str) -> Points:
    """Return the values of a metric by words read."""
    values: list[tuple[Any, Any]] = [(line.get("tokens"), line.get(name)) for line in metrics]
    return [(float(x), float(y)) for x, y in values if _is_finite(x) and _is_finite(y)]


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _averaged(points: Points) -> Points:
    """Return at most `MAX_POINTS` points, each the mean of some neighbors."""
    size = -(-len(points) // MAX_POINTS) or 1
    groups = (points[i : i + size] for i in range(0, len(points), size))
    return [(group[-1][0], math.fsum(y for _, y in group) / len(group)) for group in groups]
