"""The picture of a run: held-out perplexity and training loss by words read, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from elmokit.figures import Line, Panel, lines
from elmokit.text.files import write_text

Points = list[tuple[float, float]]

MOST_POINTS = 400
"""Of a line; more are averaged, since nobody could see them."""


def draw_curve(metrics: Iterable[dict[str, Any]], path: Path, title: str = "Training") -> None:
    """Write the picture of the lines that `metrics.py` wrote; there may be none."""
    write_text(path, picture(list(metrics), title))


def picture(noted: Sequence[dict[str, Any]], title: str) -> str:
    """The text of the picture."""
    perplexity = [
        Line(name, _points(noted, name), color)
        for color, name in enumerate(("forward", "backward"))
    ]
    loss = Line("loss", _means(_points(noted, "loss")), color=2, dots=False)
    panels = [
        Panel("held-out perplexity, full softmax", perplexity, height=266, log=True),
        Panel("training loss, nats a word", [loss], height=120),
    ]
    return lines(title, panels, across="words read", right=130)


def _points(noted: Sequence[dict[str, Any]], name: str) -> Points:
    """What was noted under a name, by words read."""
    found: list[tuple[Any, Any]] = [(line.get("tokens"), line.get(name)) for line in noted]
    return [(float(x), float(y)) for x, y in found if _finite(x) and _finite(y)]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def thinned(noted: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As few lines as show the same curve: all perplexities, and means of the losses."""
    kept = [
        {name: line[name] for name in ("tokens", "forward", "backward")}
        for line in noted
        if all(_finite(line.get(name)) for name in ("tokens", "forward", "backward"))
    ]
    losses = _means(_points(noted, "loss"))
    return sorted(
        [*kept, *({"tokens": x, "loss": round(y, 4)} for x, y in losses)],
        key=lambda line: line["tokens"],
    )


def _means(points: Points) -> Points:
    """Means of neighbors."""
    size = -(-len(points) // MOST_POINTS) or 1
    parts = (points[i : i + size] for i in range(0, len(points), size))
    return [(part[-1][0], math.fsum(y for _, y in part) / len(part)) for part in parts]
