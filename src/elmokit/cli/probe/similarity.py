"""`elmo probe similarity`: whether vectors reflect that a word means the same in two contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import context_option

if TYPE_CHECKING:
    from elmokit.probe.context import ContextChoice


@click.command("similarity", short_help="Word similarity in context against human judgments.")
@click.option(
    "--pairs",
    required=True,
    metavar="FILE",
    help="Word pairs in context with human judgments: WiC or SCWS.",
)
@click.option(
    "--gold",
    metavar="FILE",
    help="Answers to WiC's text files, one T or F per line.  [default: X.gold.* beside X.data.*]",
)
@click.option(
    "--train-pairs",
    metavar="FILE",
    help="Other pairs to choose the threshold on.  [default: the other half of --pairs]",
)
@click.option(
    "--train-gold",
    metavar="FILE",
    help="Answers to --train-pairs.  [default: as for --gold]",
)
@click.option(
    "--format",
    type=click.Choice(["wic", "json", "scws"]),
    help="Format of the files.  [default: detected from the first line]",
)
@context_option
@model_options
@result_options
def command(
    pairs: str,
    gold: str | None,
    train_pairs: str | None,
    train_gold: str | None,
    format: str | None,
    context: ContextChoice,
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Compare the similarity of a word's vectors in two contexts with human judgments.

    For pairs with yes/no answers (WiC: does the word mean the same?), the answer is yes if the
    cosine reaches a threshold, which is chosen on --train-pairs or, without them, on the other half
    of the pairs. Accuracy is reported, and the area under the ROC curve, which needs no threshold.
    For pairs with ratings (SCWS: how similar are the words in their contexts?), Spearman's
    correlation between ratings and cosines is reported.

    FILE is WiC's text (word, part of speech, i-j, sentence, sentence, separated by tabs), WiC as
    JSON Lines as in SuperGLUE, or text like SCWS's ratings.txt, with <b>…</b> around the words.

    \b
    elmo probe similarity --pairs dev.data.txt --gold dev.gold.txt
    elmo probe similarity --pairs WiC/val.jsonl --train-pairs WiC/train.jsonl
    elmo probe similarity --pairs SCWS/ratings.txt -m original --out figures

    In Python: `elmokit.probe.probe_similarity`.
    """
    if train_gold and not train_pairs:
        raise click.UsageError("--train-gold needs --train-pairs")

    from elmokit.cli.results import load_model, save_and_print
    from elmokit.probe.similarity.measure import probe_similarity
    from elmokit.progress import ProgressDisplay

    with ProgressDisplay() as display:
        measurement = probe_similarity(
            pairs,
            gold,
            load_model(model, threads),
            train_pairs=train_pairs,
            train_gold=train_gold,
            format=format,
            context=context,
            progress=display.counter("embedding pairs"),
        )
    save_and_print(measurement, out, as_json)
