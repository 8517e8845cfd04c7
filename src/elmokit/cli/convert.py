"""`elmo convert`: convert a model from one format to another."""

from __future__ import annotations

import click


@click.command("convert", short_help="Convert a model from one format to another.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--format",
    type=click.Choice(["native", "allennlp"]),
    help="Format to write. By default the ending of OUT decides: .hdf5 and .zip are AllenNLP's, "
    "everything else is native.",
)
@click.option("--force", is_flag=True, help="Write even if OUT exists.")
def command(source: str, target: str, format: str | None, force: bool) -> None:
    """Convert the model IN to another format and write it to OUT.

    IN is a directory, one file of a model, a zip archive, or a name. OUT is a directory in
    elmokit's own format (with checksums and memory-mapped weights), or options and weights for
    AllenNLP and bilm-tf. The converted model gives the same vectors and has the same fingerprint;
    only a softmax is left out of AllenNLP's format.

    \b
    elmo convert elmo_weights.hdf5 my-model           HDF5 to elmokit's own format
    elmo convert my-model export --format allennlp    export/options.json, export/weights.hdf5
    elmo convert my-model elmo.zip                    options and weights in a zip archive

    In Python: `elmokit.convert_model`.
    """
    from elmokit.convert import convert_model

    converted = convert_model(source, target, format=format, overwrite=force)
    for file in converted.files:
        click.echo(f"{file}  {file.stat().st_size:,} bytes")
    if converted.left_out:
        click.echo(
            f"left out, since this format cannot store it: {', '.join(converted.left_out)}",
            err=True,
        )
