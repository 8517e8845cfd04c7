"""What all commands that measure a model have in common: which model, where the numbers go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table as RichTable

    from elmokit.elmo import Elmo
    from elmokit.probe.results import Json
    from elmokit.probe.tables import Table

F = TypeVar("F", bound=Callable[..., Any])
LEAST = 18
"""Letters of a column of words that a narrow terminal must leave."""

_MODEL = (
    click.option(
        "-m", "--model", default="builtin", show_default=True, help="A path or a name: the biLM."
    ),
    click.option("--threads", type=click.IntRange(min=1), help="Cores to use; all by default."),
)
_RESULT = (
    click.option(
        "--out",
        metavar="DIR",
        help="Where numbers (JSON) and pictures (SVG) go.  [the cache, for `elmo report`]",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON."),
)


def model_options(function: F) -> F:
    """Add `--model` and `--threads`."""
    return _added(_MODEL, function)


def result_options(function: F) -> F:
    """Add `--out` and `--json`."""
    return _added(_RESULT, function)


def _added(options: tuple[Callable[[F], F], ...], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def load(model: str, threads: int | None) -> Elmo:
    """The model, with BLAS held to as many threads."""
    from threadpoolctl import threadpool_limits

    from elmokit.elmo import Elmo

    if threads:
        threadpool_limits(threads)
    return Elmo.load(model, threads=threads)


def finish(found: Json, out: str | None, as_json: bool, name: str | None = None) -> None:
    """Keep a measurement, print it, and say where it is."""
    from rich.console import Console
    from rich.text import Text

    from elmokit.probe.results import keep, tables

    written = keep(found, out, name)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        console = Console(highlight=False)
        for table in tables(found):
            console.print(Text(table.title, "bold"))  # brackets are no markup
            console.print(rich_table(table))
            if table.note:
                console.print(Text(table.note, "dim"))
            console.print()
    for path in written:
        click.echo(f"{'numbers' if path.suffix == '.json' else 'picture'}: {path}", err=True)


def rich_table(table: Table) -> RichTable:
    """For a terminal, without its title."""
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(table.columns):
        words = i in table.left
        least = min(max(len(row[i]) for row in table.rows), LEAST) if words and table.rows else None
        kind: JustifyMethod = "left" if words else "right"
        shown.add_column(Text(name), justify=kind, no_wrap=not words, min_width=least)
    for r, row in enumerate(table.rows):
        shown.add_row(
            *(Text(text, "bold" if (r, i) in table.bold else "") for i, text in enumerate(row))
        )
    return shown


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str], None]]:
    """Say on a terminal what is being done; call what it gives with the next thing."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(what) as status:
        yield lambda words: status.update(words)
