"""`elmo probe pos`: how well each layer predicts parts of speech."""

from __future__ import annotations

import click

from elmokit.cli.results import model_options, result_options, seed_option


@click.command("pos", short_help="Parts of speech: a linear tagger on each layer.")
@click.option(
    "--train", required=True, metavar="FILE", help="Tagged sentences to train the taggers on."
)
@click.option(
    "--test",
    "tests",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Tagged sentences to evaluate the taggers on; repeat it for several test sets.",
)
@click.option(
    "--format",
    type=click.Choice(["tabs", "conllu", "spaces"]),
    help="Format of the files.  [default: detected from their first lines]",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME|NUMBER",
    help="Column of tags, by its name or its number from 1; repeat it for several.  "
    "[default: the parts of speech]",
)
@click.option(
    "--words",
    type=click.IntRange(min=1),
    help="Number of training words to use.  [default: all]",
)
@seed_option
@model_options
@result_options
def command(
    train: str,
    tests: tuple[str, ...],
    format: str | None,
    columns: tuple[str, ...],
    words: int | None,
    seed: int,
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Train a linear tagger on each layer's frozen vectors, and measure its accuracy.

    The better the tagger of a layer, the more that layer knows about syntax. The layers are
    compared with all of them together, with the same network before training, and with the most
    frequent tag of each word. Words with several tags and words that are not in the training set
    are also counted separately.

    A file has one word per line and blank lines between sentences: word and tags separated by tabs,
    CoNLL-U, or columns separated by spaces as in CoNLL-2003 (word, pos, chunk, ner). Needs torch.

    \b
    elmo probe pos --train en_ewt-ud-train.conllu --test en_ewt-ud-dev.conllu
    elmo probe pos --train train.tsv --test dev.tsv --test test.tsv --out figures
    elmo probe pos --train train.conll --test dev.conll --column chunk -m original

    In Python: `elmokit.probe.probe_tags`.
    """
    from elmokit.cli.results import load_model, save_and_print
    from elmokit.probe.tags.measure import probe_tags
    from elmokit.progress import ProgressDisplay

    with ProgressDisplay() as display:
        measurement = probe_tags(
            train,
            tests,
            load_model(model, threads),
            columns=columns or None,
            format=format,
            words=words,
            seed=seed,
            threads=threads or 1,
            on_message=lambda text: display.update(text, 0),
        )
    save_and_print(measurement, out, as_json)
