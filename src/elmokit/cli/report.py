"""`elmo report`: all measurements of a model on one page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report", short_help="Show all measurements of a model on one HTML page.")
@click.argument("model", default="builtin")
@click.option(
    "--from",
    "directories",
    multiple=True,
    metavar="DIR",
    help="Directory of measurements (--out of the other commands); repeat it for several.",
)
@click.option(
    "--run",
    metavar="DIR",
    help="Directory of the training run, for the training curve.  [default: MODEL, if it is one]",
)
@click.option(
    "--out", metavar="FILE", help="HTML file to write.  [default: the model's NAME-report.html]"
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def command(
    model: str, directories: tuple[str, ...], run: str | None, out: str | None, open_page: bool
) -> None:
    """Write one HTML page with all measurements of MODEL; it needs no server and no network.

    The page describes the model and shows its card, its training curve, what each layer knows,
    neighbors of words, and the layer weights that tasks learned. Measurements of this very model,
    by its fingerprint, are taken from measured/ in the model's own directory, from the --from
    directories, and from the cache, where `elmo probe`, `analyze`, `neighbors` and `change` save
    them by default. Each says how much data it was made with, and those that came with the model
    are kept apart from the others. What has not been measured is listed with the command that
    measures it.

    \b
    elmo report builtin
    elmo report my-model --from analyses --out my-model.html --open

    In Python: `elmokit.probe.report`.
    """
    from elmokit.probe.report_page import report

    page = report(model, directories=directories, run=run)
    target = page.save(out or f"{Path(model).name}-report.html")
    click.echo(f"{target}: {len(page.measurements)} measurements")
    if open_page:
        click.launch(str(target.resolve()))
