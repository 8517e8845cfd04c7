"""What all commands that measure a model share: the model, and where the results go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elmokit.cli.engine_options import threads_option

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table as RichTable

    from elmokit.elmo import Elmo
    from elmokit.probe.results import Measurement
    from elmokit.probe.tables import Table

F = TypeVar("F", bound=Callable[..., Any])
MIN_TEXT_WIDTH = 18
"""Minimum width of a column of text on a narrow terminal, in characters."""


def model_options(function: F) -> F:
    """Add `--model` and `--threads`."""
    function = threads_option(function)
    return click.option(
        "-m",
        "--model",
        default="builtin",
        show_default=True,
        help="Model to measure: a path or a name.",
    )(function)


def result_options(function: F) -> F:
    """Add `--out` and `--json`."""
    function = click.option(
        "--json", "as_json", is_flag=True, help="Print the measurement as JSON instead of tables."
    )(function)
    return click.option(
        "--out",
        metavar="DIR",
        help="Directory for the numbers (JSON), tables (CSV, LaTeX) and figures (SVG).  [default: "
        "the cache, where `elmo report` finds them]",
    )(function)


def seed_option(function: F) -> F:
    """Add `--seed`."""
    return click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")(
        function
    )


def load_model(model: str, threads: int | None, state: str = "settled") -> Elmo:
    """Load the model, and limit BLAS to the same number of threads."""
    from threadpoolctl import threadpool_limits

    from elmokit.elmo import Elmo

    if threads:
        threadpool_limits(threads)
    return Elmo.load(model, state=state, threads=threads)


def save_and_print(
    measurement: Measurement, out: str | None, as_json: bool, name: str | None = None
) -> None:
    """Save a measurement, print its tables or its JSON, and print the files to stderr.

    If it cannot be saved, it is printed all the same; that is an error only where `out` is given.

    Args:
        measurement: The measurement.
        out: Directory to write to; the cache if None.
        as_json: Print JSON instead of tables.
        name: File name without its extension; the kind of the measurement if None.
    """
    from rich.console import Console
    from rich.text import Text

    from elmokit.cli.messages import describe_for_command_line
    from elmokit.errors import WriteError
    from elmokit.probe.results import render_tables, save_measurement

    failure: WriteError | None = None
    written: list[Path] = []
    try:
        # Saved before it is printed, since `elmo … | head` ends the command while it prints.
        written = save_measurement(measurement, out, name)
    except WriteError as error:
        failure = error
    if as_json:
        click.echo(json.dumps(measurement, ensure_ascii=False))
    else:
        console = Console(highlight=False)
        for table in render_tables(measurement):
            console.print(Text(table.title, "bold"))  # as `Text`, since brackets are no markup
            console.print(rich_table(table))
            if table.note:
                console.print(Text(table.note, "dim"))
            console.print()
    if failure is None:
        print_files(written)
    elif out is not None:
        raise failure
    else:
        message = describe_for_command_line(failure)
        click.echo(f"printed above, but not kept for `elmo report`: {message}", err=True)


def print_files(written: Sequence[Path]) -> None:
    """Print to stderr which files hold a measurement: one line for its tables, one per figure."""
    tables = [path for path in written if path.suffix in (".tex", ".csv")]
    click.echo(f"numbers: {written[0]}", err=True)
    if tables:
        others = "".join(f", {path.name}" for path in tables[1:])
        click.echo(f"tables: {tables[0]}{others}", err=True)
    for path in written:
        if path.suffix == ".svg":
            click.echo(f"figure: {path}", err=True)


def rich_table(table: Table) -> RichTable:
    """Return a table for the terminal, without its title."""
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(table.columns):
        is_text = i in table.left
        width = None
        if is_text and table.rows:
            width = min(max(len(row[i]) for row in table.rows), MIN_TEXT_WIDTH)
        justify: JustifyMethod = "left" if is_text else "right"
        rich.add_column(Text(name), justify=justify, no_wrap=not is_text, min_width=width)
    for r, row in enumerate(table.rows):
        rich.add_row(
            *(
                Text(text, "bold" if (r, i) in table.highlighted else "")
                for i, text in enumerate(row)
            )
        )
    return rich


@contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done; yields a function that replaces the text."""
    from elmokit.progress import ProgressDisplay

    with ProgressDisplay() as display:
        display.update(text, 0)
        yield lambda new: display.update(new, 0)
