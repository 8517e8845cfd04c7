"""What all figures have in common: the SVG document, its colors and styles, text and legends."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH = 860
"""Width of a figure in SVG units."""
CHARACTER_WIDTH = 6.4
"""Average width of a character at the usual font size, in SVG units."""

LIGHT = ("#2f6fb3", "#c2820f", "#6b7785", "#1a7f64", "#8250b5", "#c0443c")
DARK = ("#7fb2e5", "#e0b04d", "#9aa5b1", "#57c2a0", "#c4a2ee", "#f0867d")
"""Colors of the series in light and in dark mode; color-blind people can tell them apart."""

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


def _color_rules(
    ink: str, gray: str, grid: str, background: str, colors: Sequence[str]
) -> dict[str, str]:
    rules = {
        ".elmo-figure .sheet": f"fill:{background}",
        ".elmo-figure text": f"fill:{gray}",
        ".elmo-figure .ink": f"fill:{ink}",
        ".elmo-figure .on": f"fill:{background}",
        ".elmo-figure .halo": f"stroke:{background}",
        ".elmo-figure .whisker": f"stroke:{ink}",
        ".elmo-figure .grid": f"stroke:{grid};fill:none",
    }
    for number, color in enumerate(colors):
        rules[f".elmo-figure .fill{number}"] = f"fill:{color}"
        rules[f".elmo-figure .line{number}"] = f"stroke:{color}"
    return rules


def _style_sheet() -> str:
    """Return plain CSS rules, since not every viewer knows variables; dark only on a screen."""
    light = _color_rules("#222", "#5b6570", "#e4e8ec", "#fff", LIGHT)
    dark = _color_rules("#e8ebee", "#9aa5b1", "#2b323a", "#15191e", DARK)
    shape_css, light_css, dark_css = (
        "".join(f"{selector}{{{style}}}" for selector, style in rules.items())
        for rules in (_SHAPE, light, dark)
    )
    return f"{shape_css}{light_css}@media screen and (prefers-color-scheme:dark){{{dark_css}}}"


def series_color(number: int) -> int:
    """Return the color number of a series; the colors repeat after the last one."""
    return number % len(LIGHT)


def svg_document(title: str, height: float, parts: Sequence[str], width: float = WIDTH) -> str:
    """Return a whole SVG document.

    Args:
        title: Title of the figure, shown at its top.
        height: Height of the figure in SVG units.
        parts: SVG elements, in the order in which they are drawn.
        width: Width of the figure in SVG units.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'class="elmo-figure"><title>{escape(title)}</title><style>{_style_sheet()}</style>'
        f'<rect width="{width:g}" height="{height:g}" class="sheet"/>\n'
        f'<text x="20" y="28" class="title ink">{escape(title)}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def svg_text(x: float, y: float, text: str, style: str = "") -> str:
    """Return an SVG element with one line of text; `style` is a list of class names."""
    classes = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{classes}>{escape(text)}</text>'


def svg_tooltip(text: str) -> str:
    """Return an SVG element that, inside a shape, is shown when the mouse is over the shape."""
    return f"<title>{escape(text)}</title>"


def truncate(text: str, length: int) -> str:
    """Return the text, cut to a number of characters with an ellipsis at its end if too long."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def svg_legend(names: Sequence[str], x: float, y: float, colors: Sequence[int]) -> list[str]:
    """Return the SVG elements of a legend: names in a row, each with a dot of its color."""
    parts = []
    for name, color in zip(names, colors, strict=True):
        parts.append(f'<circle cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="5" class="fill{color}"/>')
        parts.append(svg_text(x + 15, y, name))
        x += 15 + CHARACTER_WIDTH * len(name) + 22
    return parts
