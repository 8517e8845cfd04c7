"""`elmo analyze`: why ELMo helps a task; one file a command."""

from __future__ import annotations

import click

from elmokit.cli.lazy import Lazy

COMMANDS = ("layers", "place", "weights", "efficiency")
"""Each is the function `command` of the module of that name beside this file."""


@click.group(
    "analyze",
    cls=Lazy,
    modules={name: f"elmokit.cli.analyze.{name}" for name in COMMANDS},
    short_help="Find out what of ELMo helps a task, and when.",
)
def command() -> None:
    """The analyses of the paper for any task, model and data: tables, pictures and JSON.

    Runs are kept in a directory, and shared: give all analyses of a task the same --runs, and what
    one has trained the next does not train again. Interrupted, the same command goes on.

    \b
    elmo analyze layers ner --train F --dev F --runs DIR        which layers, how much λ
    elmo analyze place nli --train F --dev F --runs DIR         at the input, the output, or both
    elmo analyze efficiency srl --train F --dev F --runs DIR    with less data, after fewer epochs
    elmo analyze weights DIR...                                 what trained models have learned
    """
