"""`elmo models`: list the published models."""

from __future__ import annotations

import click


@click.command("models", short_help="List the published models that can be loaded by name.")
@click.argument("search", metavar="[TEXT]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(search: str | None, as_json: bool) -> None:
    """List the published models that can be loaded by name.

    With TEXT, list only those whose name, language or description contain it.

    Every command that takes a model takes such a name; the model is downloaded at first use and
    kept. Names on the Hugging Face hub (owner/name) and web addresses work as well.

    \b
    elmo models
    elmo models german
    elmo embed -m small "She went to the bank."

    In Python: `elmokit.list_models`.
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from elmokit.fetch.published import list_models

    models = list_models(search)
    if as_json:
        for model in models:
            line = {"name": model.name, "language": model.language, "bytes": model.bytes}
            click.echo(json.dumps(line | {"description": model.description, "page": model.page}))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("name", "language", "description"):
        table.add_column(title, no_wrap=title != "description")
    for model in models:
        table.add_row(model.name, model.language, model.description)
    Console(highlight=False).print(table if models else f"no published model matches {search!r}")
