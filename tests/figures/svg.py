"""Read an SVG figure back as XML."""

from __future__ import annotations

from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/2000/svg}"
MARKUP = "a <b> & \"c\" 'd'"
"""Text that must be escaped in XML."""


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    """Return all elements of a tag."""
    return list(ElementTree.fromstring(svg).iter(f"{NAMESPACE}{tag}"))


def texts(svg: str) -> list[str]:
    """Return the text of all text elements."""
    return [text.text or "" for text in elements(svg, "text")]


def filled_elements(svg: str, tag: str) -> list[ElementTree.Element]:
    """Return the elements of a tag that have the color of a series."""
    return [each for each in elements(svg, tag) if (each.get("class") or "").startswith("fill")]
