"""`elmo convert`: a model from one format to another."""

from __future__ import annotations

from pathlib import Path

import click


def convert(
    source: str | Path, target: str | Path, format: str | None = None, force: bool = False
) -> tuple[list[Path], list[str]]:
    """Convert a model; returns the files written and what the new format cannot hold."""
    from elmokit import formats
    from elmokit.elmo import Elmo
    from elmokit.errors import InputError

    formats.writes_as(target, format)
    place = Path(target).expanduser()
    if not force and place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise InputError(f"{target} exists; nothing was written. Give another name, or --force")
    elmo = Elmo.load(source)
    return elmo.save(target, format), formats.left_behind(elmo.bilm, target, format)


@click.command("convert", short_help="Convert a model from one format to another.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--format",
    type=click.Choice(["native", "allennlp"]),
    help="What to write. By default OUT decides: .hdf5 and .zip are AllenNLP's, else native.",
)
@click.option("--force", is_flag=True, help="Write even if OUT exists.")
def command(source: str, target: str, format: str | None, force: bool) -> None:
    """Convert the model IN to OUT.

    IN is a directory, one file of a model, a zip archive, or a name. OUT is a directory (our own
    format: checksums, memory-mapped weights, settled state), or options and weights for AllenNLP
    and bilm-tf. The numbers stay the same, bit for bit, there and back.

    \b
    elmo convert elmo_weights.hdf5 my-model           HDF5 to a directory of ours
    elmo convert my-model export --format allennlp    export/options.json, export/weights.hdf5
    elmo convert my-model elmo.zip                    the same pair in a zip archive
    """
    files, lost = convert(source, target, format, force)
    for file in files:
        click.echo(f"{file}  {file.stat().st_size:,} bytes")
    if lost:
        click.echo(f"not in this format, left behind: {', '.join(lost)}", err=True)
