"""`elmo report`: a model in one page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report", short_help="Show all that was measured of a model as one page.")
@click.argument("model", default="builtin")
@click.option(
    "--from",
    "places",
    multiple=True,
    metavar="DIR",
    help="A directory of measurements (--out of the other commands); may be repeated.",
)
@click.option("--run", metavar="DIR", help="The directory of its training.  [MODEL itself]")
@click.option("--out", metavar="FILE", help="The page.  [NAME-report.html]")
@click.option("--open", "look", is_flag=True, help="Show it in the browser.")
def command(
    model: str, places: tuple[str, ...], run: str | None, out: str | None, look: bool
) -> None:
    """Write one HTML page with everything that was measured for MODEL: no server, no network.

    What it is, its card, the curve of its training, what each layer knows, neighbors of words,
    the weights that tasks gave to its layers. Measurements of this very model (by its fingerprint)
    are found in the directories that --from names, in the model's own directory (measured/), and
    in the cache, where `elmo probe`, `analyze`, `neighbors` and `change` keep them unless told
    otherwise. What has not been measured is named with the command that does it.

    \b
    elmo report builtin
    elmo report my-model --from analyses --out my-model.html --open
    """
    from elmokit import formats
    from elmokit.cli.inspect import facts_of, inspect
    from elmokit.elmo import Elmo, locate
    from elmokit.errors import InputError
    from elmokit.probe.report_page import page
    from elmokit.probe.results import collect, store
    from elmokit.probe.training import NOTES, training
    from elmokit.text.files import write_text

    elmo = Elmo.load(model)
    source = Path(formats.detect(locate(model)).source.path)
    home = source if source.is_dir() else source.parent
    for place in places:
        if not Path(place).expanduser().is_dir():
            raise InputError(f"{place} is no directory; expected one with measurements")
    fingerprint = elmo.bilm.fingerprint
    found = collect(fingerprint, [*places, home / "measured", store(fingerprint)])
    if run is not None or (home / NOTES).is_file():
        found = [training(elmo, run or home), *(one for one in found if one["kind"] != "training")]
    name = "the built-in model" if model == "builtin" else source.stem or model
    card = source / "README.md"  # one beside a single file may be of anything
    text = card.read_text(encoding="utf-8") if card.is_file() else None
    facts = [(what, value) for what, value in facts_of(inspect(model)) if what != "model"]
    target = Path(out).expanduser() if out else Path(f"{Path(model).name}-report.html")
    write_text(target, page(name[0].upper() + name[1:], facts, text, found))
    click.echo(f"{target}: {len(found)} measurements")
    if look:
        click.launch(str(target.resolve()))
