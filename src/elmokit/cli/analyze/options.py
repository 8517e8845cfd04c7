"""The options of all analyses that train: which data, where the runs are kept, how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from elmokit.cli.measured import result_options
from elmokit.cli.task.options import TASKS, choices_but

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--elmo", metavar="MODEL", help="The biLM; a path or a name.  [builtin]"),
    click.option("--test", metavar="FILE", help="What all are scored on.  [the development set]"),
    click.option("--runs", required=True, metavar="DIR", help="Where the runs are kept."),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        default=3,
        show_default=True,
        help="How many runs of each system.",
    ),
    click.option("--jobs", type=click.IntRange(min=1), help="Runs at a time.  [one for each core]"),
)


def analysis(*decided: str) -> Callable[[F], F]:
    """Add a task, its data and the choices of its models; but not those that are `decided`."""

    def add(function: F) -> F:
        function = result_options(function)
        for option in reversed(_OPTIONS):
            function = option(function)
        function = choices_but("elmo", *decided)(function)
        return click.argument("task", metavar="TASK", type=click.Choice(TASKS))(function)

    return add
