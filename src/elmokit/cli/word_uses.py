"""The uses of one word for `elmo embed --word`: printed as a table, or drawn with --picture."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, LayerChoice

LINES_EXAMINED = 1000
"""Number of lines in which a tab shows that the lines have senses."""
SUFFIXES = (".svg", ".html", ".htm")
"""File name endings of pictures."""


def check_picture(picture: str | None, force: bool) -> None:
    """Raise an error if the picture could not be written, before anything is computed."""
    if picture is None:
        return
    path = Path(picture)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{picture}: a picture is written to a file named *.svg or *.html")
    if not path.parent.is_dir():
        raise InputError(f"{picture}: the directory {path.parent} does not exist; create it first")
    if path.exists() and not force:
        raise InputError(f"{picture} exists; give another name, or replace it with --force")


def show_uses(
    elmo: Elmo,
    word: str,
    lines: Iterator[str],
    tokenized: bool,
    split: bool,
    layers: LayerChoice,
    picture: str | None,
    open_picture: bool,
) -> None:
    """Print the uses of a word, each with the use nearest to it, or draw them.

    Args:
        elmo: The model.
        word: The word.
        lines: Sentences, each with its sense and a tab before it if that is known.
        tokenized: Whether words are split at spaces only.
        split: Whether the lines are running text.
        layers: Layer to draw; `"mix"` and `"all"` draw all of them.
        picture: SVG or HTML file to write.
        open_picture: Whether to open the picture in the browser.
    """
    from elmokit.cli.similarities import print_uses
    from elmokit.probe.uses.collect import collect_uses
    from elmokit.probe.uses.picture import MOST_USES, render_uses
    from elmokit.storage import write_text

    elmo.layer_selector(layers)  # raises for a layer that the model does not have
    sentences, senses = _read_senses(lines, tokenized, split)
    collected = collect_uses(elmo, word, sentences, senses, MOST_USES)
    if picture is None:
        print_uses(elmo, collected)
    else:
        chosen = None if layers in ("mix", "all") else [-1 if layers == "top" else int(layers)]
        as_page = not picture.lower().endswith(".svg")
        write_text(Path(picture), render_uses(collected, chosen, "html" if as_page else "svg"))
        panels = elmo.layers if chosen is None else len(chosen)
        click.echo(
            f"{picture}: {_count(len(collected.uses), 'use')} of {word!r} in "
            f"{_count(panels, 'layer')}"
        )
    if collected.without_word:
        click.echo(
            f"{_count(collected.without_word, 'sentence')} without {word!r} left out", err=True
        )
    if len(collected.uses) == MOST_USES:
        click.echo(f"only the first {MOST_USES} uses are compared", err=True)
    if picture and open_picture and not webbrowser.open(Path(picture).resolve().as_uri()):
        click.echo(f"no browser was found; open {os.path.abspath(picture)} yourself", err=True)


def _read_senses(
    lines: Iterator[str], tokenized: bool, split: bool
) -> tuple[Iterator[str | list[str]], list[str] | None]:
    """Return the sentences, and the sense of each if the lines have senses.

    A line is SENSE, a tab and a sentence; without a tab, it is a sentence without a sense. A line
    that begins with # is a comment if the lines have senses. A text without senses may be long, so
    it is not read at once.
    """
    from elmokit.cli.embed import make_sentences

    first = list(islice(lines, LINES_EXAMINED))
    if not any("\t" in line.strip() for line in first):
        return make_sentences(chain(first, lines), tokenized, split), None
    sentences: list[str | list[str]] = []
    senses: list[str] = []
    for line in chain(first, lines):
        sense, tab, rest = line.partition("\t")
        if line.startswith("#") and not tab:
            continue
        made = list(make_sentences(iter([rest if tab else line]), tokenized, split))
        sentences += made
        senses += [sense.strip() if tab else ""] * len(made)
    return iter(sentences), senses


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
