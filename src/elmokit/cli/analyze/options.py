"""What all analyses that train models have in common: their options, and how they run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from elmokit.cli.results import result_options
from elmokit.cli.task.options import Command, TaskOptions, task_options

if TYPE_CHECKING:
    from elmokit.probe.results import Measurement

_OPTIONS = (
    click.option(
        "--test",
        metavar="FILE",
        show_default="the development data",
        help="Test data that all models are scored on.",
    ),
    click.option("--runs", required=True, metavar="DIR", help="Directory to store the runs in."),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        default=3,
        show_default=True,
        help="Number of random seeds, and so of runs of each system.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        show_default="one per core",
        help="Number of runs at a time.",
    ),
)
_ELMO = click.option(
    "--elmo", metavar="MODEL", show_default="builtin", help="ELMo model, as a name or a path."
)


class Analysis(Protocol):
    """The result of an analysis."""

    def measured(self) -> Measurement:
        """Return the result as a measurement."""
        ...


@dataclass(frozen=True)
class AnalysisOptions:
    """The values of the options that all analyses have."""

    task: TaskOptions
    """The task, its data and its settings."""
    test: str | None
    """Test data; None for the development data."""
    runs: str
    """Directory of the runs."""
    seeds: int
    """Number of random seeds."""
    jobs: int | None
    """Number of runs at a time; None for one per core."""
    out: str | None
    """Directory for numbers and figures; None for the cache."""
    as_json: bool
    """Whether to print the numbers as JSON."""


def analysis_options(*excluded: str) -> Callable[[Command], Command]:
    """Return a decorator that gives a command a task, its data, its settings and where to store.

    The command receives their values as one argument, `options`.

    Args:
        excluded: Fields of `Settings` that the analysis sets itself.
    """

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def collect(
            *,
            options: TaskOptions,
            test: str | None,
            runs: str,
            seeds: int,
            jobs: int | None,
            out: str | None,
            as_json: bool,
            **own: Any,
        ) -> None:
            function(options=AnalysisOptions(options, test, runs, seeds, jobs, out, as_json), **own)

        command: Command = result_options(collect)
        for option in reversed(_OPTIONS):
            command = option(command)
        return task_options(*excluded, metavar="TASK", elmo=_ELMO)(command)

    return decorate


def run_analysis(kind: str, analyze: Callable[..., Analysis], options: AnalysisOptions) -> None:
    """Run an analysis, save its results and print them.

    Args:
        kind: Kind of the measurement.
        analyze: The function of `elmokit.probe`, called with settings, files, directory, seeds,
            jobs and callback.
        options: The values of the options.
    """
    from elmokit.cli.results import save_and_print
    from elmokit.progress import ProgressDisplay
    from elmokit.tasks.display import show_trials

    settings, files = options.task.settings(), options.task.files(options.test)
    with ProgressDisplay() as display:
        result = analyze(
            settings,
            files,
            options.runs,
            seeds=range(options.seeds),
            jobs=options.jobs,
            callback=show_trials(display),
        )
    name = f"{kind}-{options.task.task}"
    save_and_print(result.measured(), options.out, options.as_json, name)
