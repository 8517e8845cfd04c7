"""Links between pages: from paths of the repository to those of the site; dead links."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

REPOSITORY = "https://github.com/elmokit/elmokit"

_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)((?: \"[^\"]*\")?\))")
_ADMONITION = re.compile(r"^> \[!(NOTE|TIP|WARNING|IMPORTANT)\]\n((?:^>.*\n?)+)", re.MULTILINE)


class PageError(Exception):
    """Something in the pages is wrong; the message says where."""


def for_site(text: str, source: str, places: Mapping[str, str], root: Path) -> str:
    """Return a page with what GitHub understands turned into what the site understands.

    Args:
        text: The page.
        source: Its path in the repository.
        places: The place on the site of every file of the repository that has one.
        root: The repository.
    """
    text = _ADMONITION.sub(_admonition, text)
    text = re.sub(r"<(table|tr|td|th|details)>", r'<\1 markdown="1">', text)
    parts, start = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_rewrite(text[start : fence.start()], source, places, root), fence[0]]
        start = fence.end()
    return "".join([*parts, _rewrite(text[start:], source, places, root)])


def _admonition(match: re.Match[str]) -> str:
    body = "".join("    " + line[2:] + "\n" for line in match[2].splitlines())
    return f"!!! {match[1].lower()}\n\n{body}\n"


def _rewrite(text: str, source: str, places: Mapping[str, str], root: Path) -> str:
    def replace(match: re.Match[str]) -> str:
        return match[1] + _target(match[2], source, places, root) + match[3]

    return _LINK.sub(replace, text)


def _target(link: str, source: str, places: Mapping[str, str], root: Path) -> str:
    if link.startswith("#") or urlsplit(link).scheme:
        return link
    path, _, anchor = link.partition("#")
    there = os.path.normpath(PurePosixPath(source).parent / path)
    if there.startswith(".."):
        raise PageError(f"{source}: the link {link} leads out of the repository")
    if there in places:
        here = PurePosixPath(places[source]).parent
        return os.path.relpath(places[there], here) + (f"#{anchor}" if anchor else "")
    if not (root / there).exists():
        raise PageError(f"{source}: the link {link} leads to nothing")
    kind = "tree" if (root / there).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{there}" + (f"#{anchor}" if anchor else "")


# -- the built site ------------------------------------------------------------------------------


class _Page(HTMLParser):
    """The links and anchors of an HTML page, and what it loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        stylesheet = tag == "link" and values.get("rel") in {"stylesheet", "icon", "preload"}
        if stylesheet:
            self.loads.append(values.get("href", ""))
        if tag in {"script", "img", "iframe", "source"} and "src" in values:
            self.loads.append(values["src"])
        if values.get("data-md-component") == "source":  # a script asks GitHub for stars
            self.loads.append(values.get("href", ""))


def check_html(site: Path) -> None:
    """Raise `PageError` for dead links and anchors, and for what is loaded from another host."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    anchors = {path: page.anchors for path, page in pages.items()}
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        name = path.relative_to(site).as_posix()
        wrong += [
            f"{name} loads {u}" for u in page.loads if urlsplit(u).scheme in {"http", "https"}
        ]
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("#__") or not link:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{name}: {link} leads to nothing")
            elif parts.fragment and unquote(parts.fragment) not in anchors.get(target, ()):
                wrong.append(f"{name}: {link} has no such anchor")
    if wrong:
        raise PageError("\n  ".join([f"{len(wrong)} dead links or foreign files", *wrong]))
