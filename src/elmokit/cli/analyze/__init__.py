"""`elmo analyze`: why ELMo helps a task; one file per command."""

from __future__ import annotations

import click

from elmokit.cli.lazy import LazyGroup

COMMANDS = ("layers", "place", "weights", "efficiency")
"""The commands; each is the function `command` of the module of its name."""


@click.group(
    "analyze",
    cls=LazyGroup,
    modules={name: f"elmokit.cli.analyze.{name}" for name in COMMANDS},
    short_help="Find out what about ELMo helps a task, and when.",
)
def command() -> None:
    """Run the analyses of the paper for any task, model and data: tables, figures and JSON.

    Runs are stored in a directory and shared: give all analyses of a task the same --runs, and what
    one has trained is not trained again by the next. An interrupted command can be repeated: it
    continues where it stopped.

    \b
    elmo analyze layers ner --train F --dev F --runs DIR        which layers, how much λ
    elmo analyze place nli --train F --dev F --runs DIR         at the input, the output, or both
    elmo analyze efficiency srl --train F --dev F --runs DIR    with less data, in fewer epochs
    elmo analyze weights DIR...                                 the weights of trained models
    """
