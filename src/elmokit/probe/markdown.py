"""Markdown to HTML, as far as model cards use it.

Headings, paragraphs, lists, tables, code, quotes; bold, emphasis, code and links within a line. A
card may come from anybody: HTML in it is shown, not obeyed, addresses other than of the web are
dropped, and images are named instead of loaded, so that a page stays whole without a network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape

_FRONT = re.compile(r"\A---\n.*?\n---\n", re.S)
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])\s+(.*)")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*$")
_DASHES = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_IN_LINE = re.compile(
    r"(?P<code>`+)(?P<inside>.+?)(?P=code)"
    r"|(?P<image>!)?\[(?P<label>[^\]]*)\]\((?P<address>[^)\s]*)[^)]*\)"
    r"|\*\*(?P<bold>.+?)\*\*"
    r"|(?<![\w*])[*_](?P<emphasis>[^*_\s](?:[^*_]*[^*_\s])?)[*_](?![\w*])"
)


def to_html(text: str, *, top: int = 1) -> str:
    """The HTML of a document; its highest headings become `<h{top}>`."""
    lines = _FRONT.sub("", text.replace("\r\n", "\n")).split("\n")
    return "\n".join(_blocks(lines, top))


def _blocks(lines: list[str], top: int) -> Iterator[str]:
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif line.lstrip().startswith(("```", "~~~")):
            fence = line.lstrip()[:3]
            end = next((k for k in range(i + 1, len(lines)) if _closes(lines[k], fence)), None)
            inside = lines[i + 1 : end]
            yield f"<pre><code>{escape(chr(10).join(inside))}</code></pre>"
            i = len(lines) if end is None else end + 1
        elif heading := _HEADING.match(line):
            level = min(len(heading[1]) + top - 1, 6)
            yield f"<h{level}>{_within(heading[2])}</h{level}>"
            i += 1
        elif _RULE.match(line):
            yield "<hr>"
            i += 1
        elif line.lstrip().startswith("|") and i + 1 < len(lines) and _DASHES.match(lines[i + 1]):
            end = _while(lines, i, lambda each: each.lstrip().startswith("|"))
            yield _table(lines[i:end])
            i = end
        elif line.lstrip().startswith(">"):
            end = _while(lines, i, lambda each: each.lstrip().startswith(">"))
            inside = [re.sub(r"^\s*>\s?", "", each) for each in lines[i:end]]
            yield f"<blockquote>{''.join(_blocks(inside, top))}</blockquote>"
            i = end
        elif _ITEM.match(line):
            end = _while(lines, i, lambda each: bool(_ITEM.match(each)) or each.startswith("  "))
            yield _list(lines[i:end])
            i = end
        else:
            end = _while(lines, i + 1, _goes_on)
            yield f"<p>{_within(' '.join(each.strip() for each in lines[i:end]))}</p>"
            i = end


def _closes(line: str, fence: str) -> bool:
    return line.strip() == fence


def _goes_on(line: str) -> bool:
    """Whether a paragraph does."""
    starts = ("```", "~~~", "|", ">")
    begins = line.lstrip().startswith(starts) or _HEADING.match(line) or _ITEM.match(line)
    return bool(line.strip()) and not begins


def _while(lines: list[str], start: int, holds: Callable[[str], bool]) -> int:
    i = start
    while i < len(lines) and holds(lines[i]):
        i += 1
    return i


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in _cells(line)] for line in lines]
    ends = [cell.endswith(":") for cell in rows[1]]

    def row(name: str, cells: list[str]) -> str:
        found = []
        for i, cell in enumerate(cells):
            kind = ' class="number"' if i < len(ends) and ends[i] else ""
            found.append(f"<{name}{kind}>{_within(cell)}</{name}>")
        return f"<tr>{''.join(found)}</tr>"

    head = f"<thead>{row('th', rows[0])}</thead>" if any(rows[0]) else ""
    body = "\n".join(row("td", cells) for cells in rows[2:])
    return f'<div class="table"><table>{head}<tbody>{body}</tbody></table></div>'


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|")
    inside = inside.removesuffix("|") if not inside.endswith("\\|") else inside
    return [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def _list(lines: list[str]) -> str:
    """Items of one level; deeper ones are read as items of their own list."""
    items: list[tuple[str, list[str]]] = []
    first = _ITEM.match(lines[0])
    depth = len(first[1]) if first else 0
    for line in lines:
        found = _ITEM.match(line)
        if found and len(found[1]) <= depth:
            items.append((found[3], []))
        else:
            items[-1][1].append(line)
    kind = "ol" if first and first[2][0].isdigit() else "ul"
    made = []
    for text, more in items:
        k = _while(more, 0, lambda each: not _ITEM.match(each))
        whole = " ".join([text, *(each.strip() for each in more[:k])])
        made.append(f"<li>{_within(whole)}{_list(more[k:]) if more[k:] else ''}</li>")
    return f"<{kind}>{''.join(made)}</{kind}>"


def _within(text: str) -> str:
    """Of a line."""
    parts, place = [], 0
    for found in _IN_LINE.finditer(text):
        parts.append(escape(text[place : found.start()]))
        place = found.end()
        if found["code"]:
            parts.append(f"<code>{escape(found['inside'].strip())}</code>")
        elif found["address"] is not None:
            label, address = _within(found["label"]), found["address"]
            safe = address.startswith(("https://", "http://")) and not found["image"]
            parts.append(f'<a href="{escape(address)}">{label}</a>' if safe else label)
        elif found["bold"]:
            parts.append(f"<strong>{_within(found['bold'])}</strong>")
        else:
            parts.append(f"<em>{_within(found['emphasis'])}</em>")
    return "".join([*parts, escape(text[place:])])
