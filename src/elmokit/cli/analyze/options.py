"""What all analyses that train have in common: their options, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from elmokit.cli.results import result_options
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


def run(
    kind: str,
    analyze: Callable[..., Any],
    *,
    task: str,
    train: str,
    dev: str,
    test: str | None,
    runs: str,
    seeds: int,
    jobs: int | None,
    sizes: tuple[str, ...],
    out: str | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Do an analysis with what the options of `analysis` say, and show what it found."""
    from elmokit.cli.results import finish
    from elmokit.cli.task.options import given
    from elmokit.cli.task.watching import Watching
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Files

    settings = Settings(task=task, **given(sizes, **chosen))
    files = Files(train, dev, test)
    with Watching() as watching:
        found = analyze(settings, files, runs, seeds=range(seeds), jobs=jobs, hear=watching.hear)
    finish(found.measured(), out, as_json, f"{kind}-{task}")
