"""`elmo inspect`: describe a model."""

from __future__ import annotations

import click


@click.command("inspect", short_help="Describe a model: format, sizes, parameters, checksum.")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(model: str, as_json: bool) -> None:
    """Describe MODEL: its format, architecture, sizes, vocabulary and checksum.

    MODEL is a directory, one file of a model, a zip archive, or a name. Reading the model checks
    it: every array must be present, finite, of the right shape and, in elmokit's own format, match
    its checksum.

    \b
    elmo inspect path/to/model
    elmo inspect elmo_2x1024_128_2048cnn_1xhighway_weights.hdf5
    elmo inspect 144.zip --json

    In Python: `elmokit.inspect_model`.
    """
    from elmokit.inspect import describe_model, inspect_model

    info = inspect_model(model)
    if as_json:
        import json

        click.echo(json.dumps(info))
        return

    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in describe_model(info):
        table.add_row(name, value)
    Console(soft_wrap=False, highlight=False).print(table)
