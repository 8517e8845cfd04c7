"""`elmo probe geometry`: how the vectors of each layer lie in space."""

from __future__ import annotations

import click

from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import form_of, text_options


@click.command("geometry", short_help="How far context moves a word's vectors.")
@click.option(
    "--corpus", "files", required=True, multiple=True, metavar="FILE", help="Text; several are one."
)
@text_options
@click.option(
    "--words",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="Stop after so many words.",
)
@click.option(
    "--uses",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Count words with so many uses or more.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
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
    """Measure how far context moves the vectors of words, layer by layer (Ethayarajh, 2019).

    Self-similarity is the mean cosine between uses of a word; intra-sentence similarity, that
    between a word and its sentence's mean; maximum explainable variance, what a single direction
    explains of a word's uses. Anisotropy, the mean cosine between uses of different words, is taken
    off: what is left says how contextual a layer is. Also the words that context moves most.

    FILE is read as `elmo corpus` reads text: UTF-8, plain or compressed, Parquet, a directory, or -
    for stdin; a line is a paragraph of running text, unless --lines or --tokenized says otherwise.

    \b
    elmo probe geometry --corpus news.txt
    elmo probe geometry --corpus heldout.tokens --tokenized --words 50000 -m original --out figures
    """
    form = form_of(lines, tokenized)

    from elmokit.cli.bars import progress_bar
    from elmokit.cli.results import finish, load
    from elmokit.probe.geometry.measure import measure, sample
    from elmokit.probe.results import signature
    from elmokit.train.reading import Text

    text = sample(Text(files, form, column), words, uses)
    elmo = load(model, threads)
    known = signature(elmo, {}, words=words, uses=uses, seed=seed)
    # Of the sentences that were read, not of the files: they may be large, or stdin.
    known["data"]["corpus"] = text.sha256
    with progress_bar("reading") as on_progress:
        found = measure(elmo, text, known, seed=seed, on_progress=on_progress)
    finish(found, out, as_json)
