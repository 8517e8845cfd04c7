"""`elmo probe similarity`: whether vectors say that a word means the same in two contexts."""

from __future__ import annotations

import click

from elmokit.cli.results import model_options, result_options


@click.command("similarity", short_help="Meaning: the same word in two contexts.")
@click.option("--pairs", required=True, metavar="FILE", help="WiC's pairs, or SCWS's ratings.")
@click.option(
    "--gold", metavar="FILE", help="T or F for each pair of WiC's text.  [*.gold.* beside *.data.*]"
)
@click.option("--train-pairs", metavar="FILE", help="Other pairs, to choose the threshold on.")
@click.option("--train-gold", metavar="FILE", help="T or F for each of them.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["wic", "json", "scws"]),
    help="Of the files.  [seen from the first line]",
)
@model_options
@result_options
def command(
    pairs: str,
    gold: str | None,
    train_pairs: str | None,
    train_gold: str | None,
    form: str | None,
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Compare a word's vectors in two contexts with what people say about its meaning.

    Pairs with yes or no (WiC: does the word mean the same?): yes from a cosine on that was chosen
    on --train-pairs or, without them, on the other half of the pairs; how often that is right, and
    the area under the curve, which needs no threshold. Pairs with ratings (SCWS: how alike are the
    words as they are used?): Spearman's correlation between ratings and cosines.

    FILE is WiC's text (word, part of speech, i-j, sentence, sentence, between tabs), WiC in lines
    of JSON as in SuperGLUE, or text like SCWS's ratings.txt, with <b>…</b> around the words.

    \b
    elmo probe similarity --pairs dev.data.txt --gold dev.gold.txt
    elmo probe similarity --pairs WiC/val.jsonl --train-pairs WiC/train.jsonl
    elmo probe similarity --pairs SCWS/ratings.txt -m original --out figures
    """
    if train_gold and not train_pairs:
        raise click.UsageError("--train-gold needs --train-pairs")

    from elmokit.cli.bars import progress_bar
    from elmokit.cli.results import finish, load
    from elmokit.probe.results import signature
    from elmokit.probe.similarity.measure import measure
    from elmokit.probe.similarity.pairs import gold_beside, read_pairs

    data = read_pairs(pairs, gold, form)
    train = read_pairs(train_pairs, train_gold, form) if train_pairs else None
    files = {"pairs": pairs}
    if data.form == "wic":
        files["gold"] = str(gold or gold_beside(pairs))
    if train_pairs and train is not None:
        files["train-pairs"] = train_pairs
        if train.form == "wic":
            files["train-gold"] = str(train_gold or gold_beside(train_pairs))
    elmo = load(model, threads)
    with progress_bar("reading") as on_progress:
        found = measure(elmo, data, signature(elmo, files), train=train, on_progress=on_progress)
    finish(found, out, as_json)
