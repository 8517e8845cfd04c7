"""`elmo settle`: let every sentence start from the state after text of the model's language."""

from __future__ import annotations

import click

from elmokit.cli.text_options import text_form, text_options


@click.command("settle", short_help="Let a model settle on text of its language.")
@click.argument("model")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--out", required=True, metavar="OUT", help="Directory or file to write.")
@text_options
@click.option(
    "--sentences",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of sentences to read.",
)
@click.option("--zero", is_flag=True, help="Store a state of zeros; needs no TEXT.")
@click.option(
    "--format",
    type=click.Choice(["native", "allennlp"]),
    help="Format to write. By default the ending of OUT decides: .hdf5 and .zip are AllenNLP's, "
    "everything else is native.",
)
@click.option("--force", is_flag=True, help="Write even if OUT exists.")
def command(
    model: str,
    texts: tuple[str, ...],
    out: str,
    lines: bool,
    tokenized: bool,
    column: str | None,
    sentences: int,
    zero: bool,
    format: str | None,
    force: bool,
) -> None:
    """Save MODEL with the state after reading TEXT, from which every sentence then starts.

    A model that was published without a settled state reads a short English text first. Give a
    model of another language some text of its own: a few sentences are enough, since the state
    depends mostly on the last of them. The weights and the fingerprint stay the same.

    TEXT is UTF-8, plain or compressed, Parquet, a directory, or - for stdin. A line is a paragraph
    of running text, unless --lines or --tokenized is given.

    \b
    elmo settle manylangs-de zeitung.txt --out german       settle on the first 100 sentences
    elmo settle 144.zip words.txt --tokenized --out m       words separated by spaces
    elmo settle my-model --zero --out m                     start every sentence from zeros

    In Python: `elmokit.settle_model`.
    """
    form = text_form(lines, tokenized)
    if zero and texts:
        raise click.UsageError("--zero reads no text; leave out TEXT or --zero")
    if not zero and not texts:
        raise click.UsageError("give a TEXT in the language of the model, or --zero")

    from elmokit.settle import settle_model
    from elmokit.train.text_reader import TextReader

    settled = settle_model(
        model,
        None if zero else TextReader(texts, form, column),
        out,
        max_sentences=sentences,
        format=format,
        overwrite=force,
    )
    for file in settled.files:
        click.echo(f"{file}  {file.stat().st_size:,} bytes")
    if zero:
        click.echo("every sentence starts from zeros", err=True)
    else:
        click.echo(f"settled on {settled.sentences:,} sentences, {settled.words:,} words", err=True)
    if settled.started_from_zeros and not zero:
        click.echo(
            f"note: {model} starts its sentences from zeros, as in its training; after settling on "
            "text they start from a state that it has not been trained with. To undo: --zero",
            err=True,
        )
    if settled.left_out:
        click.echo(
            f"left out, since this format cannot store it: {', '.join(settled.left_out)}",
            err=True,
        )
