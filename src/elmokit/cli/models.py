"""`elmo models`: the published models that can be named."""

from __future__ import annotations

import click


@click.command("models", short_help="List the published models that can be loaded by name.")
@click.argument("word", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def command(word: str | None, as_json: bool) -> None:
    """List the published models that can be loaded by name, or those that WORD occurs in.

    A name stands wherever a model is asked for; the model is downloaded at its first use and kept.
    Names on the Hugging Face hub (owner/name) and addresses work as well.

    \b
    elmo models
    elmo models german
    elmo embed -m small "She went to the bank."
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from elmokit.fetch import PUBLISHED

    asked = (word or "").lower()
    found = [m for m in PUBLISHED if asked in f"{m.name} {m.language} {m.description}".lower()]
    if as_json:
        for model in found:
            size = sum(file.bytes or 0 for file in model.files) or None
            facts = {"name": model.name, "language": model.language, "bytes": size}
            click.echo(json.dumps(facts | {"description": model.description, "page": model.page}))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("name", "language", "description"):
        table.add_column(title, no_wrap=title != "description")
    for model in found:
        table.add_row(model.name, model.language, model.description)
    Console(highlight=False).print(table if found else f"no published model has {word!r} in it")
