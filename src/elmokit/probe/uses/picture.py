"""A picture of the uses of a word: dots with their sentences, one panel per layer."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError
from elmokit.figures import PanelItem, ScatterPanel, draw_scatter_panels
from elmokit.probe.excerpt import running_text
from elmokit.probe.plane import project_to_plane
from elmokit.probe.uses.collect import CollectedUses, collect_uses

LABEL_LENGTH = 34
"""Characters of a label at most."""
MOST_USES = 500
"""Number of uses that are drawn at most: a picture of more is slow to open and shows less."""
SAME = 1e-5
"""Coordinates of vectors of length 1 that differ by less count as equal."""

PictureFormat = Literal["svg", "html"]
"""Format of a picture: an SVG document, or a page of HTML that lists the sentences too."""


def draw_uses(
    elmo: Elmo,
    word: str,
    sentences: Iterable[Sentence],
    *,
    senses: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    format: PictureFormat = "svg",
) -> str:
    """Draw the uses of a word as labeled dots, layer by layer, and return the picture as text.

    A dot is placed by the first two principal components of the vectors in its layer: uses that
    are near to each other have similar vectors. The command `elmo embed --picture` does this.

    Args:
        elmo: The model.
        word: The word, in upper or lower case.
        sentences: Strings (tokenized) or lists of words. Those without the word are passed over;
            all uses are drawn, up to 500.
        senses: Sense or group of the word in each sentence, which gives the dot its color; empty
            where it is not known.
        layers: Numbers of the layers to draw, 0 being the characters alone; by default all.
        format: `"svg"`, or `"html"` for a page that lists the sentences below the picture.
    """
    collected = collect_uses(elmo, word, sentences, senses, MOST_USES)
    return render_uses(collected, layers, format)


def render_uses(
    collected: CollectedUses, layers: Sequence[int] | None = None, format: PictureFormat = "svg"
) -> str:
    """Return the picture of uses that were collected before; see `draw_uses`."""
    if format not in ("svg", "html"):
        raise InputError(f"format is {format!r}; expected 'svg' or 'html'")
    svg = _draw(collected, _check_layers(layers, len(collected.layers_LND)))
    return svg if format == "svg" else _page(collected, svg)


def _check_layers(layers: Sequence[int] | None, count: int) -> list[int]:
    if layers is None:
        return list(range(count))
    for layer in layers:
        if not -count <= layer < count:
            raise InputError(f"layer {layer} does not exist; this model has 0 to {count - 1}")
    if not layers:
        raise InputError("layers is empty; expected at least one number, or None for all")
    return [layer % count for layer in layers]


def _draw(collected: CollectedUses, layers: Sequence[int]) -> str:
    items = [
        PanelItem(_tooltip(use.words, use.sense), use.snippet(LABEL_LENGTH), use.sense)
        for use in collected.uses
    ]
    panels = []
    before: list[tuple[float, float]] | None = None
    for layer in layers:
        points = _place(collected.layers_LND[layer], before)
        before = points if len(set(points)) > 1 else None
        panels.append(ScatterPanel(_layer_title(layer), points, _layer_note(collected, layer)))
    count = len(items)
    return draw_scatter_panels(
        f"{count} uses of “{collected.word}”, placed by their vectors"
        if count > 1
        else f"1 use of “{collected.word}”",
        items,
        panels,
        note="Each panel shows the two directions in which the vectors of its layer differ most.",
    )


def _place(
    vectors_ND: FloatArray, before: list[tuple[float, float]] | None
) -> list[tuple[float, float]]:
    """Return where the dots are, on the same sides as in the panel before as far as possible."""
    if np.ptp(vectors_ND, axis=0).max() < SAME:
        return [(0.0, 0.0)] * len(vectors_ND)
    points = project_to_plane(vectors_ND)
    if before is None:
        return points
    signs = np.where((np.array(points) * np.array(before)).sum(axis=0) < 0, -1.0, 1.0)
    return [(x * signs[0], y * signs[1]) for x, y in points]


def _layer_title(layer: int) -> str:
    return "Layer 0: the characters of the word" if layer == 0 else f"Layer {layer}: LSTM"


def _layer_note(collected: CollectedUses, layer: int) -> str:
    if np.ptp(collected.layers_LND[layer], axis=0).max() < SAME and len(collected.uses) > 1:
        return "one vector for all uses: nothing of the sentence is in it"
    if (counts := collected.same_sense(layer)) is None:
        return ""
    return "the nearest other use has the same sense: {} of {}".format(*counts)


def _tooltip(words: Sequence[str], sense: str) -> str:
    sentence = running_text(words)
    return f"{sense}: {sentence}" if sense else sentence


# -- the page ------------------------------------------------------------------------------------

_MARK = "\0"
"""Character around the word in a sentence while the sentence becomes HTML; no text has it."""
_STYLE = """
:root{color-scheme:light dark;--ink:#222;--gray:#5b6570;--sheet:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e8ebee;--gray:#9aa5b1;--sheet:#15191e}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--sheet);
max-width:900px;margin:1.5rem auto;padding:0 1rem}
.figure{overflow-x:auto}
svg{display:block;width:100%;min-width:640px;height:auto}
svg [data-item]{transition:opacity .1s;cursor:pointer}
.focus svg [data-item]{opacity:.15}
.focus svg .on-item{opacity:1}
.focus svg circle.on-item{stroke:var(--ink);stroke-width:2}
p{color:var(--gray)}
table{border-collapse:collapse;width:100%}
td{padding:.2rem .5rem;vertical-align:top;overflow-wrap:anywhere}
td.sense{white-space:nowrap;color:var(--gray)}
tr.on-item{background:color-mix(in srgb,currentColor 12%,transparent)}
@media print{svg{min-width:0}}
"""
_SCRIPT = """
const marked=new Set();
function mark(item){
  for(const each of marked)each.classList.remove('on-item');
  marked.clear();
  document.body.classList.toggle('focus',item!==undefined);
  if(item===undefined)return;
  for(const each of document.querySelectorAll(`[data-item="${item}"]`)){
    each.classList.add('on-item');marked.add(each);
  }
}
document.addEventListener('mouseover',event=>{
  mark(event.target.closest('[data-item]')?.dataset.item);
});
document.addEventListener('click',event=>{
  const item=event.target.closest('svg [data-item]')?.dataset.item;
  if(item!==undefined){
    document.querySelector(`tr[data-item="${item}"]`).scrollIntoView({block:'center'});
    mark(item);
  }
});
"""


def _page(collected: CollectedUses, svg: str) -> str:
    """Return a page of HTML that needs no other file: the picture, and the sentences below it."""
    rows = []
    with_senses = any(use.sense for use in collected.uses)
    for number, use in enumerate(collected.uses):
        words = [word.replace(_MARK, "") for word in use.words]
        words[use.position] = f"{_MARK}{words[use.position]}{_MARK}"
        before, word, after = html.escape(running_text(words), quote=False).split(_MARK)
        sentence = f"{before}<strong>{word}</strong>{after}"
        sense = f'<td class="sense">{html.escape(use.sense)}</td>' if with_senses else ""
        rows.append(f'<tr data-item="{number}">{sense}<td dir="auto">{sentence}</td></tr>')
    title = html.escape(f"Uses of “{collected.word}”")
    return (
        '<!doctype html>\n<html><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n"
        f'<div class="figure">\n{svg}</div>\n'
        "<p>Point at a dot or a sentence to find it in every layer; click a dot to go to its "
        "sentence.</p>\n"
        f"<table>\n{chr(10).join(rows)}\n</table>\n<script>{_SCRIPT}</script>\n</body></html>\n"
    )
