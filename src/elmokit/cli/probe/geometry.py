"""`elmo probe geometry`: how much the vectors of each layer depend on context."""

from __future__ import annotations

import click

from elmokit.cli.results import model_options, result_options, seed_option
from elmokit.cli.text_options import text_form, text_options


@click.command("geometry", short_help="How much a word's vectors depend on its context.")
@click.option(
    "--corpus",
    "files",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Text to read; repeat it for several files.",
)
@text_options
@click.option(
    "--words",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="Number of words to read.",
)
@click.option(
    "--uses",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Minimum number of uses of a word that is counted.",
)
@seed_option
@model_options
@result_options
def command(
    files: tuple[str, ...],
    lines: bool,
    tokenized: bool,
    column: str | None,
    words: int,
    uses: int,
    seed: int,
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure how much the vectors of words depend on context, by layer (Ethayarajh, 2019).

    Self-similarity is the mean cosine between uses of the same word; intra-sentence similarity that
    between a word and the mean of its sentence; maximum explainable variance the part of a word's
    uses that a single direction explains. Anisotropy, the mean cosine between uses of different
    words, is subtracted. The words whose vectors depend most and least on context are listed.

    FILE is read as by `elmo corpus`: UTF-8 text, plain or compressed, Parquet, a directory, or -
    for stdin. A line is a paragraph of running text, unless --lines or --tokenized is given.

    \b
    elmo probe geometry --corpus news.txt
    elmo probe geometry --corpus heldout.tokens --tokenized --words 50000 -m original --out figures

    In Python: `elmokit.probe.probe_geometry`.
    """
    form = text_form(lines, tokenized)

    from elmokit.cli.results import load_model, save_and_print
    from elmokit.probe.geometry.measure import probe_geometry
    from elmokit.progress import ProgressDisplay

    with ProgressDisplay() as display:
        measurement = probe_geometry(
            files,
            load_model(model, threads),
            form=form,
            column=column,
            words=words,
            uses=uses,
            seed=seed,
            progress=display.counter("embedding words"),
        )
    save_and_print(measurement, out, as_json)
