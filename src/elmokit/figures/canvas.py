"""The sheet that every picture is drawn on: its colors, its letters, its frame."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH = 860
LETTER = 6.4
"""The width of a letter of the usual size, on average."""

LIGHT = ("#2f6fb3", "#c2820f", "#6b7785", "#1a7f64", "#8250b5", "#c0443c")
DARK = ("#7fb2e5", "#e0b04d", "#9aa5b1", "#57c2a0", "#c4a2ee", "#f0867d")
"""Colors that people tell apart who see few: of the first series, of the second, …"""

_SHAPE = {
    ".elmo-figure text": "font:12px system-ui,sans-serif",
    ".elmo-figure .title": "font-size:16px",
    ".elmo-figure .small": "font-size:11px",
    ".elmo-figure .end": "text-anchor:end",
    ".elmo-figure .middle": "text-anchor:middle",
    ".elmo-figure .line": "fill:none;stroke-width:2;stroke-linejoin:round",
    ".elmo-figure .thin": "stroke-width:1.3",
    ".elmo-figure .whisker": "stroke-width:1.5;fill:none",
    ".elmo-figure .halo": "paint-order:stroke;stroke-width:3;stroke-linejoin:round",
    ".elmo-figure .dashed": "stroke-dasharray:5 4",
    ".elmo-figure .faint": "opacity:.45",
}


def _rules(ink: str, gray: str, grid: str, sheet: str, colors: Sequence[str]) -> dict[str, str]:
    rules = {
        ".elmo-figure .sheet": f"fill:{sheet}",
        ".elmo-figure text": f"fill:{gray}",
        ".elmo-figure .ink": f"fill:{ink}",
        ".elmo-figure .on": f"fill:{sheet}",
        ".elmo-figure .halo": f"stroke:{sheet}",
        ".elmo-figure .whisker": f"stroke:{ink}",
        ".elmo-figure .grid": f"stroke:{grid};fill:none",
    }
    for number, color in enumerate(colors):
        rules[f".elmo-figure .fill{number}"] = f"fill:{color}"
        rules[f".elmo-figure .line{number}"] = f"stroke:{color}"
    return rules


def _style() -> str:
    """Plain rules, since not every viewer knows variables; dark only on a screen."""
    light = _rules("#222", "#5b6570", "#e4e8ec", "#fff", LIGHT)
    dark = _rules("#e8ebee", "#9aa5b1", "#2b323a", "#15191e", DARK)
    shape, light_text, dark_text = (
        "".join(f"{what}{{{how}}}" for what, how in rules.items())
        for rules in (_SHAPE, light, dark)
    )
    return f"{shape}{light_text}@media screen and (prefers-color-scheme:dark){{{dark_text}}}"


def color(number: int) -> int:
    """The number of a series' color; after the last the first comes again."""
    return number % len(LIGHT)


def sheet(title: str, height: float, parts: Sequence[str], width: float = WIDTH) -> str:
    """The whole document."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'class="elmo-figure"><title>{escape(title)}</title><style>{_style()}</style>'
        f'<rect width="{width:g}" height="{height:g}" class="sheet"/>\n'
        f'<text x="20" y="28" class="title ink">{escape(title)}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, style: str = "") -> str:
    """A line of text."""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}>{escape(words)}</text>'


def hover(words: str) -> str:
    """What a mouse over a shape shows."""
    return f"<title>{escape(words)}</title>"


def cut(words: str, letters: int) -> str:
    """At most so many letters."""
    return words if len(words) <= letters else f"{words[: letters - 1]}…"


def legend(names: Sequence[str], x: float, y: float, colors: Sequence[int]) -> list[str]:
    """Names in a row, each with a dot of its color."""
    parts = []
    for name, number in zip(names, colors, strict=True):
        parts.append(f'<circle cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="5" class="fill{number}"/>')
        parts.append(text(x + 15, y, name))
        x += 15 + LETTER * len(name) + 22
    return parts
