"""Markdown to HTML that is safe to show, for model cards.

A card may come from anybody: HTML in it is shown as text, only links to the web become links, and
images are replaced by their descriptions, so that the page needs no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.S)
_WEB = ("https://", "http://")


def markdown_to_html(text: str, *, top: int = 1) -> str:
    """Return the HTML of a document.

    Args:
        text: Markdown with tables; YAML front matter is left out.
        top: Level of the document's highest headings, `<h1>` by default.
    """
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    # Links are filtered below, where the text of a link can be kept without its address.
    parser.validateLink = lambda address: True  # type: ignore[method-assign,assignment]
    tokens = parser.parse(_FRONT_MATTER.sub("", text.replace("\r\n", "\n")))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + top - 1, 6)}"
        elif token.type == "inline":
            token.children = list(_safe_inline(token.children or ()))
        elif token.type in ("th_open", "td_open"):
            style = token.attrs.pop("style", "")
            if style == "text-align:right":
                token.attrSet("class", "number")
        elif token.type == "fence":
            token.info = ""  # no class for a language that nothing highlights
    html: str = parser.renderer.render(_without_empty_heads(tokens), parser.options, {})
    html = html.replace("<table>", '<div class="table"><table>')
    return html.replace("</table>", "</table></div>").strip()


def _safe_inline(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens of a line without links to anything but the web, and without images."""
    kept: list[bool] = []  # for each link that is open, whether it stays a link
    for token in tokens:
        if token.type == "image":
            yield Token("text", "", 0, content=token.content)
        elif token.type == "link_open":
            kept.append(str(token.attrs.get("href", "")).lower().startswith(_WEB))
            if kept[-1]:
                yield token
        elif token.type == "link_close":
            if kept.pop():
                yield token
        else:
            yield token


def _without_empty_heads(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens without the heads of tables whose header cells are all empty."""
    kept: list[Token] = []
    start = 0
    for token in tokens:
        if token.type == "thead_open":
            start = len(kept)
        kept.append(token)
        if token.type == "thead_close" and not any(each.content for each in kept[start:]):
            del kept[start:]
    return kept
