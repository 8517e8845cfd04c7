"""How wholes are divided: a bar for each, as long as all others, cut into its parts.

As the paper draws the weights of the layers: what is less than an even part is faint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.figures.canvas import LETTER, WIDTH, color, cut, hover, legend, sheet, text

TOP, THICK, SPACE, RIGHT = 66, 24, 10, 90
COLORS = (2, 0, 3, 1, 4, 5)
"""Of the parts: the first is gray, since in a biLM it is the one without context."""


@dataclass(frozen=True)
class Division:
    """A whole and its parts, which add up to 1."""

    name: str
    parts: Sequence[float]
    note: str = ""
    """Behind the bar."""


def shares(title: str, divisions: Sequence[Division], names: Sequence[str]) -> str:
    """The picture; `names` are those of the parts."""
    labels = [cut(division.name, 40) for division in divisions]
    left = 36 + LETTER * max((len(label) for label in labels), default=0)
    width = WIDTH - RIGHT - left
    colors = [COLORS[color(number)] for number in range(len(names))]
    parts = legend(names, left, 50, colors)
    y = float(TOP)
    for division, label in zip(divisions, labels, strict=True):
        parts.append(text(left - 14, y + 16, label, "end ink"))
        x = left
        for number, part in enumerate(division.parts):
            faint = " faint" if part < 1 / len(division.parts) else ""
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(width * part - 1.5, 0.5):.1f}" '
                f'height="{THICK}" rx="2" class="fill{colors[number]}{faint}">'
                f"{hover(f'{names[number]}: {part:.3f}')}</rect>"
            )
            if width * part > 34:
                kind = "middle small " + ("ink" if faint else "on")
                parts.append(text(x + width * part / 2, y + 16, f"{part:.2f}", kind))
            x += width * part
        parts.append(text(WIDTH - RIGHT + 10, y + 16, division.note))
        y += THICK + SPACE
    return sheet(title, y + 14, parts)
