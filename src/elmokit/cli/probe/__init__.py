"""`elmo probe`: what each layer of a model knows; one file per command."""

from __future__ import annotations

import click

from elmokit.cli.lazy import LazyGroup

COMMANDS = ("pos", "wsd", "similarity", "geometry")
"""Each is the function `command` of the module of that name beside this file."""


@click.group(
    "probe",
    cls=LazyGroup,
    modules={name: f"elmokit.cli.probe.{name}" for name in COMMANDS},
    short_help="Measure what each layer of a model knows.",
)
def command() -> None:
    """Measure what each layer of a frozen model knows, compared with the untrained network.

    Every probe works with any model, prints tables, draws figures, and saves the numbers as JSON
    with a signature of what determined them. `elmo report` shows all of them on one page.

    \b
    elmo probe pos --train train.tsv --test test.tsv             part-of-speech tagging
    elmo probe wsd --semcor DIR --wordnet DIR --test DIR         word sense disambiguation
    elmo probe similarity --pairs pairs.txt --gold gold.txt      word similarity in context
    elmo probe geometry --corpus text.txt                        how much vectors depend on context

    In Python: `elmokit.probe`.
    """
