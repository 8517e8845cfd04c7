"""Probabilities as bars, for people at a terminal. It knows names and numbers, no task."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

WIDTH = 24
"""Characters of a bar that stands for certainty."""


def bars(names: Sequence[str], shares: Sequence[float], styles: Sequence[str]) -> Text:
    """A line for each name: the name, its bar, its share in percent. The largest is bold."""
    text = Text()
    width = max(map(len, names))
    best = max(range(len(names)), key=shares.__getitem__)
    for place, (name, share, style) in enumerate(zip(names, shares, styles, strict=True)):
        weight = "bold " if place == best else ""
        filled = round(share * WIDTH)
        text.append("\n" if place else "")
        text.append(f"  {name:<{width}}  ", style=f"{weight}{style}")
        text.append("█" * filled, style=style)
        text.append("·" * (WIDTH - filled), style="dim")
        text.append(f" {100 * share:5.1f} %", style=weight.strip())
    return text
