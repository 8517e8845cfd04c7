"""Probabilities as bars in a terminal. Knows names and numbers, but no task."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

WIDTH = 24
"""Characters of the bar of a probability of 1."""


def render_probabilities(
    names: Sequence[str], probabilities: Sequence[float], styles: Sequence[str]
) -> Text:
    """Return one line per name: the name, its bar, its probability. The likeliest is bold."""
    text = Text()
    width = max(map(len, names))
    best = max(range(len(names)), key=probabilities.__getitem__)
    rows = zip(names, probabilities, styles, strict=True)
    for k, (name, probability, style) in enumerate(rows):
        weight = "bold " if k == best else ""
        filled = round(probability * WIDTH)
        text.append("\n" if k else "")
        text.append(f"  {name:<{width}}  ", style=f"{weight}{style}")
        text.append("█" * filled, style=style)
        text.append("·" * (WIDTH - filled), style="dim")
        text.append(f" {100 * probability:5.1f} %", style=weight.strip())
    return text
