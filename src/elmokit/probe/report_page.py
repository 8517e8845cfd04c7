"""The report: a model's measurements, its metadata and its card on one page of HTML.

`report` collects them; `render_page` only renders. The page needs no network and no other file,
follows the reader's choice of light or dark, and prints.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import elmokit
from elmokit import formats
from elmokit.elmo import BUILTIN, Elmo, locate_model
from elmokit.errors import InputError
from elmokit.inspect import describe_model, inspect_model
from elmokit.probe.data_label import data_label
from elmokit.probe.markdown import markdown_to_html
from elmokit.probe.results import (
    Measurement,
    ModelOrName,
    as_elmo,
    find_measurements,
    headline,
    measurement_id,
    measurements_directory,
    render_figures,
    render_tables,
    with_context,
)
from elmokit.probe.tables import table_to_html
from elmokit.probe.training import METRICS_FILE, training_measurement
from elmokit.storage import write_text

CHAPTERS = {
    "Training": ("training",),
    "What each layer knows": ("pos", "wsd", "similarity", "geometry"),
    "Words in context": ("neighbors", "change"),
    "Use in tasks": ("weights", "layers", "place", "efficiency"),
}
"""Chapters of the page and the kinds of measurements in each."""

TITLES = {
    "training": "Training curve",
    "pos": "Part-of-speech tagging",
    "wsd": "Word sense disambiguation",
    "similarity": "Word similarity in context",
    "geometry": "Geometry of the vectors",
    "neighbors": "Nearest neighbors",
    "change": "Semantic change",
    "weights": "Layer weights learned by tasks",
    "layers": "Comparison of layers",
    "place": "Comparison of placements",
    "efficiency": "Sample efficiency",
}
"""Title of each kind of measurement."""

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
"""The command that makes each kind of measurement."""

MODEL, LOCAL, CARD, MISSING = "Model", "Measured here", "Model card", "Not measured yet"
"""Headings of the other chapters."""

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
.tiles small { color: var(--gray); font-size: .75rem; line-height: 1.35; display: block }
.table { overflow-x: auto; margin: .75rem 0 }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
caption { text-align: left; padding: .25rem 0; font-weight: 600 }
th, td { text-align: left; padding: .28rem .9rem .28rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line) }
th { color: var(--gray); font-weight: 500 }
td.number, th.number { text-align: right; white-space: nowrap }
.best { font-weight: 700 }
.metadata td:first-child { color: var(--gray); white-space: nowrap }
.metadata td { overflow-wrap: anywhere }
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


@dataclass(frozen=True)
class Report:
    """A report on a model as one page of HTML."""

    title: str
    """Name of the model."""
    measurements: list[Measurement]
    """The measurements on the page."""
    html: str
    """The page."""

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; returns its path."""
        target = Path(path).expanduser()
        write_text(target, self.html)
        return target

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return self.html


def report(
    model: ModelOrName = BUILTIN,
    *,
    directories: Sequence[str | Path] = (),
    run: str | Path | None = None,
) -> Report:
    """Collect all measurements of a model on one page of HTML.

    The command `elmo report` does this. Measurements of this very model, by its fingerprint, are
    taken from `measured/` in the model's own directory, from the given directories, and from the
    cache. Those of the model's own directory, which came with it, are kept apart from the others.

    Args:
        model: A model, or the name or path of one; a loaded model has no directory of its own.
        directories: Directories of measurements, as `save_measurement` writes them.
        run: Directory of the training run, for the training curve; by default the model's own
            directory, if it is one.
    """
    for directory in directories:
        if not Path(directory).expanduser().is_dir():
            raise InputError(f"{directory} is not a directory; expected one with measurements")
    elmo = as_elmo(model)
    fingerprint = elmo.bilm.fingerprint
    title, card, home = "Model", None, None
    if not isinstance(model, Elmo):
        source = Path(formats.detect_format(locate_model(model)).source.path)
        home = source if source.is_dir() else source.parent
        title = "The built-in model" if model == BUILTIN else source.stem or str(model)
        title = title[0].upper() + title[1:]
        readme = source / "README.md"  # a README beside a single file may be about anything
        card = readme.read_text(encoding="utf-8") if readme.is_file() else None
    shipped = find_measurements(fingerprint, [home / "measured"] if home else [])
    known = {measurement_id(each) for each in shipped}
    local = [
        each
        for each in find_measurements(
            fingerprint, [*directories, measurements_directory(fingerprint)]
        )
        if measurement_id(each) not in known
    ]
    if not shipped:
        shipped, local = local, []
    if run is None and home and (home / METRICS_FILE).is_file():
        run = home
    if run is not None:
        others = [each for each in shipped if each["kind"] != "training"]
        shipped = [training_measurement(elmo, run), *others]
        local = [each for each in local if each["kind"] != "training"]
    rows = _describe(model)
    page = render_page(title, rows, card, shipped, local)
    return Report(title, [*shipped, *local], page)


def _describe(model: ModelOrName) -> list[tuple[str, str]]:
    """Return what is known about a model as names and values; its path stays private."""
    if not isinstance(model, Elmo):
        return [row for row in describe_model(inspect_model(model)) if row[0] != "model"]
    vocabulary = model.bilm.vocabulary
    return [
        ("parameters", f"{model.bilm.parameters:,}"),
        ("vectors", f"{model.layers} of size {model.dim} per word"),
        ("vocabulary", "none" if vocabulary is None else f"{len(vocabulary):,} words"),
        ("fingerprint", model.bilm.fingerprint),
    ]


def render_page(
    title: str,
    metadata: Sequence[tuple[str, str]],
    card: str | None,
    measurements: Sequence[Measurement],
    local: Sequence[Measurement] = (),
) -> str:
    """Return the whole page.

    Args:
        title: Name of the model.
        metadata: What the model is, as names and values.
        card: The model card as Markdown, if there is one.
        measurements: The measurements of the model; those that came with it, if there are any.
        local: Other measurements, which get a chapter of their own.
    """
    parts = [f"<h1>{escape(title)}</h1>", _lead(measurements, local), _tiles(measurements)]
    chapters = {
        name: [each for kind in kinds for each in measurements if each["kind"] == kind]
        for name, kinds in CHAPTERS.items()
    }
    filled = [name for name, members in chapters.items() if members]
    more = [*([LOCAL] if local else []), *([CARD] if card else []), MISSING]
    parts.append(_contents([MODEL, *filled, *more]))
    parts.append(_heading(MODEL))
    parts.append(_metadata_table(metadata))
    for name in filled:
        parts.append(_heading(name))
        parts += [_section(measurement) for measurement in chapters[name]]
    if local:
        parts.append(_heading(LOCAL))
        parts.append(
            '<p class="note">From the cache of this machine or from directories that were named, '
            "not shipped with the model. Compare the data and its size before the numbers.</p>"
        )
        parts.append(_tiles(local))
        parts += [_section(measurement) for measurement in local]
    if card:
        parts.append(_heading(CARD))
        parts.append(markdown_to_html(card, top=3))
    parts.append(_heading(MISSING))
    parts.append(_missing([*measurements, *local]))
    parts.append(
        f"<footer>Made by elmokit {elmokit.__version__}, <code>elmo report</code>.</footer>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · elmokit</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        "<main>\n" + "\n".join(part for part in parts if part) + "\n</main>\n</body>\n</html>\n"
    )


def _lead(measurements: Sequence[Measurement], local: Sequence[Measurement]) -> str:
    count = len(measurements) + len(local)
    text = f"{count} measurement{'s' if count != 1 else ''}" if count else "nothing measured yet"
    if local:
        text += f", of which {len(measurements)} came with the model and {len(local)} did not"
    return f'<p class="lead">An ELMo bidirectional language model: {text}.</p>'


def _tiles(measurements: Sequence[Measurement]) -> str:
    """Return the headlines of all measurements as tiles."""
    tiles = "".join(
        f"<div><b>{escape(found[0])}</b><span>{escape(found[1])}</span>"
        f"<small>{escape(data_label(each).partition(';')[0])}</small></div>"
        for each in measurements
        if (found := headline(each)) is not None
    )
    return f'<div class="tiles">{tiles}</div>' if tiles else ""


def _contents(names: Sequence[str]) -> str:
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in names)
    return f"<nav>{links}</nav>"


def _heading(name: str) -> str:
    return f'<h2 id="{_anchor(name)}">{escape(name)}</h2>'


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _metadata_table(metadata: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in metadata)
    return f'<div class="table metadata"><table><tbody>{rows}</tbody></table></div>'


def _section(measurement: Measurement) -> str:
    """Return a measurement: its figures, its tables, and its signature."""
    subject = measurement.get("task") or measurement.get("word")
    title = with_context(
        TITLES[measurement["kind"]] + (f": {subject}" if subject else ""), measurement
    )
    parts = [f"<h3>{escape(title)}</h3>", f'<p class="note">{escape(data_label(measurement))}</p>']
    parts += [f"<figure>{figure.svg}</figure>" for figure in render_figures(measurement)]
    parts += [table_to_html(table) for table in render_tables(measurement)]
    signature = json.dumps(measurement["signature"], indent=1, ensure_ascii=False)
    parts.append(
        f"<details><summary>Signature: what determined these numbers</summary>"
        f"<pre><code>{escape(signature)}</code></pre></details>"
    )
    return "\n".join(parts)


def _missing(measurements: Sequence[Measurement]) -> str:
    """Return the kinds that were not measured, with the commands that measure them."""
    measured = {each["kind"] for each in measurements}
    missing = [kind for kinds in CHAPTERS.values() for kind in kinds if kind not in measured]
    if not missing:
        return "<p>Every kind of measurement is here.</p>"
    rows = "".join(
        f"<tr><td>{escape(TITLES[kind])}</td><td><code>{escape(COMMANDS[kind])}</code></td></tr>"
        for kind in missing
    )
    return f'<div class="table"><table><tbody>{rows}</tbody></table></div>'
