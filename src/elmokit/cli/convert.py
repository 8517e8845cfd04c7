"""`elmo convert`: convert a model from one format to another."""

from __future__ import annotations

import click


@click.command("convert", short_help="Convert a model from one format to another.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--format",
    type=click.Choice(["native", "allennlp", "onnx"]),
    help="Format to write. By default the ending of OUT decides: .hdf5 and .zip are AllenNLP's, "
    ".onnx is ONNX, everything else is native.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float16"]),
    help="How an ONNX file stores the weights; the network computes in float32 either way.  "
    "[default: as IN does]",
)
@click.option("--force", is_flag=True, help="Write even if OUT exists.")
def command(source: str, target: str, format: str | None, dtype: str | None, force: bool) -> None:
    """Convert the model IN to another format and write it to OUT.

    IN is a directory, one file of a model, a zip archive, or a name. OUT is a directory in
    elmokit's own format (with checksums), options and weights for AllenNLP and bilm-tf, or an ONNX
    file for onnxruntime, in any language and in the browser. The converted model gives the same
    vectors (ONNX: to 1e-5) and has the same fingerprint; only a softmax is left out of AllenNLP's
    format and of ONNX.

    \b
    elmo convert elmo_weights.hdf5 my-model           HDF5 to elmokit's own format
    elmo convert my-model export --format allennlp    export/options.json, export/weights.hdf5
    elmo convert my-model elmo.zip                    options and weights in a zip archive
    elmo convert my-model model.onnx                  model.onnx, model.onnx.json

    In Python: `elmokit.convert_model`.
    """
    from elmokit.convert import convert_model

    converted = convert_model(source, target, format=format, overwrite=force, dtype=dtype)
    for file in converted.files:
        click.echo(f"{file}  {file.stat().st_size:,} bytes")
    if converted.left_out:
        click.echo(
            f"left out, since this format cannot store it: {', '.join(converted.left_out)}",
            err=True,
        )
