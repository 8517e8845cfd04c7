"""`elmo probe`: what each layer of a model knows; one file a command."""

from __future__ import annotations

import click

from elmokit.cli.lazy import Lazy

COMMANDS = ("pos", "wsd", "similarity", "geometry")
"""Each is the function `command` of the module of that name beside this file."""


@click.group(
    "probe",
    cls=Lazy,
    modules={name: f"elmokit.cli.probe.{name}" for name in COMMANDS},
    short_help="Measure what each layer of a model knows.",
)
def command() -> None:
    """What each layer of a frozen model knows, beside the same network before it was trained.

    Every probe works on any model, prints a table, draws a picture and keeps the numbers as JSON
    with a signature of what determined them; `elmo report` shows all of them in one page.

    \b
    elmo probe pos --train train.tsv --test test.tsv             parts of speech
    elmo probe wsd --semcor DIR --wordnet DIR --test DIR         senses of words
    elmo probe similarity --pairs pairs.txt --gold gold.txt      the same word in two contexts
    elmo probe geometry --corpus text.txt                        how vectors lie in space
    """
