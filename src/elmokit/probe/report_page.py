"""A model in one page of HTML that needs nothing else: what it is, and all that was measured of it.

Follows the reader's choice of light or dark, and prints. Computes nothing: what it shows are
measurements (`results.py`), a card, and facts that it is given.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

import elmokit
from elmokit.probe import markdown, results, tables
from elmokit.probe.results import Json

CHAPTERS = {
    "How it was trained": ("training",),
    "What each layer knows": ("pos", "wsd", "similarity", "geometry"),
    "Words in context": ("neighbors", "change"),
    "What tasks take from it": ("weights", "layers", "place", "efficiency"),
}
"""Which kinds of measurements belong together."""

TITLES = {
    "training": "Training",
    "pos": "Parts of speech",
    "wsd": "Senses of words",
    "similarity": "The same word in two contexts",
    "geometry": "How vectors lie in space",
    "neighbors": "Nearest uses",
    "change": "Change of use",
    "weights": "Weights of the layers",
    "layers": "All layers or the last",
    "place": "Input or output",
    "efficiency": "Less data, fewer epochs",
}

COMMANDS = {
    "training": "elmo report MODEL --run DIR",
    "pos": "elmo probe pos --train FILE --test FILE",
    "wsd": "elmo probe wsd --semcor DIR --wordnet DIR --test DIR",
    "similarity": "elmo probe similarity --pairs FILE --gold FILE",
    "geometry": "elmo probe geometry --corpus FILE",
    "neighbors": 'elmo neighbors WORD --in "A sentence with it." --corpus FILE',
    "change": "elmo change WORD… --then FILE --now FILE",
    "weights": "elmo analyze weights DIR…",
    "layers": "elmo analyze layers TASK --train FILE --dev FILE --runs DIR",
    "place": "elmo analyze place TASK --train FILE --dev FILE --runs DIR",
    "efficiency": "elmo analyze efficiency TASK --train FILE --dev FILE --runs DIR",
}
"""What measures a kind."""

_STYLE = """
:root { color-scheme: light dark; --sheet: #fff; --ink: #1f2328; --gray: #5b6570; --line: #e4e8ec;
  --soft: #f5f7f9; --link: #2f6fb3 }
@media screen and (prefers-color-scheme: dark) { :root { --sheet: #15191e; --ink: #e8ebee;
  --gray: #9aa5b1; --line: #2b323a; --soft: #1c2127; --link: #7fb2e5 } }
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
body { margin: 0; background: var(--sheet); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif }
main { max-width: 56rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem }
h2 { font-size: 1.4rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem }
h4, h5, h6 { font-size: 1rem; margin: 1.25rem 0 .25rem }
a { color: var(--link) }
.lead, .note, caption, summary { color: var(--gray) }
.note { font-size: .875rem; max-width: 48rem; margin-top: .25rem }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0; font-size: .9rem }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem;
  margin: 1.5rem 0; padding: 0 }
.tiles > div { background: var(--soft); border-radius: .5rem; padding: .8rem 1rem }
.tiles b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; font-weight: 600 }
.tiles span { color: var(--gray); font-size: .85rem; line-height: 1.35; display: block }
.table { overflow-x: auto; margin: .75rem 0 }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
caption { text-align: left; padding: .25rem 0; font-weight: 600 }
th, td { text-align: left; padding: .28rem .9rem .28rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line) }
th { color: var(--gray); font-weight: 500 }
td.number, th.number { text-align: right; white-space: nowrap }
.best { font-weight: 700 }
.facts td:first-child { color: var(--gray); white-space: nowrap }
.facts td { overflow-wrap: anywhere }
code, pre { font: .85em/1.45 ui-monospace, monospace; background: var(--soft);
  border-radius: .25rem }
code { padding: .1em .3em }
pre { padding: .75rem 1rem; overflow-x: auto }
pre code { padding: 0; background: none; font-size: 1em }
figure { margin: 1rem 0 }
figure svg { width: 100%; height: auto; display: block }
details { margin: .5rem 0; font-size: .9rem }
summary { cursor: pointer }
footer { margin-top: 3rem; color: var(--gray); font-size: .85rem }
@media print {
  body { font-size: 10.5pt }
  main { max-width: none; padding: 0 }
  nav, details { display: none }
  h2, h3 { break-after: avoid }
  figure, table, .tiles > div { break-inside: avoid }
}
"""


def page(
    title: str, facts: Sequence[tuple[str, str]], card: str | None, found: Sequence[Json]
) -> str:
    """The whole page.

    Args:
        title: the model's name.
        facts: what it is, in lines of a name and a value.
        card: its Markdown card, if it has one.
        found: its measurements.
    """
    parts = [f"<h1>{escape(title)}</h1>", _lead(found), _tiles(found)]
    chapters = {
        name: [one for kind in kinds for one in found if one["kind"] == kind]
        for name, kinds in CHAPTERS.items()
    }
    there = [name for name, ones in chapters.items() if ones]
    more = ["Its card"] if card else []
    parts.append(_contents(["What it is", *there, *more, "What was not measured"]))
    parts.append(_heading("What it is"))
    parts.append(_facts(facts))
    for name in there:
        parts.append(_heading(name))
        parts += [_section(one) for one in chapters[name]]
    if card:
        parts.append(_heading("Its card"))
        parts.append(markdown.to_html(card, top=3))
    parts.append(_heading("What was not measured"))
    parts.append(_missing(found))
    parts.append(
        f"<footer>Made by elmokit {elmokit.__version__}, <code>elmo report</code>.</footer>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · elmokit</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        "<main>\n" + "\n".join(part for part in parts if part) + "\n</main>\n</body>\n</html>\n"
    )


def _lead(found: Sequence[Json]) -> str:
    count = len(found)
    said = f"{count} measurement{'s' if count != 1 else ''}" if count else "nothing measured yet"
    return f'<p class="lead">An ELMo biLM, looked at from inside: {said}.</p>'


def _tiles(found: Sequence[Json]) -> str:
    """The numbers to remember."""
    heads = [head for one in found if (head := results.headline(one)) is not None]
    tiles = "".join(
        f"<div><b>{escape(n)}</b><span>{escape(what)}</span></div>" for n, what in heads
    )
    return f'<div class="tiles">{tiles}</div>' if tiles else ""


def _contents(names: Sequence[str]) -> str:
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in names)
    return f"<nav>{links}</nav>"


def _heading(name: str) -> str:
    return f'<h2 id="{_anchor(name)}">{escape(name)}</h2>'


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in facts)
    return f'<div class="table facts"><table><tbody>{rows}</tbody></table></div>'


def _section(one: Json) -> str:
    """A measurement: pictures, tables, and what determined them."""
    about = one.get("task") or one.get("word")
    title = TITLES[one["kind"]] + (f": {about}" if about else "")
    parts = [f"<h3>{escape(title)}</h3>"]
    parts += [f"<figure>{picture.svg}</figure>" for picture in results.pictures(one)]
    parts += [tables.html(table) for table in results.tables(one)]
    told = json.dumps(one["signature"], indent=1, ensure_ascii=False)
    parts.append(
        f"<details><summary>What determined these numbers</summary>"
        f"<pre><code>{escape(told)}</code></pre></details>"
    )
    return "\n".join(parts)


def _missing(found: Sequence[Json]) -> str:
    """What else could be known, and how."""
    kinds = {one["kind"] for one in found}
    missing = [kind for names in CHAPTERS.values() for kind in names if kind not in kinds]
    if not missing:
        return "<p>Every kind of measurement is here.</p>"
    rows = "".join(
        f"<tr><td>{escape(TITLES[kind])}</td><td><code>{escape(COMMANDS[kind])}</code></td></tr>"
        for kind in missing
    )
    return f'<div class="table"><table><tbody>{rows}</tbody></table></div>'
