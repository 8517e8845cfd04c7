"""`elmo analyze layers`: whether all layers are better than the last."""

from __future__ import annotations

from typing import Any

import click

from elmokit.cli.analyze.options import analysis, run


@click.command("layers", short_help="No ELMo, its last layer, all layers: which is best.")
@analysis("layers", "l2")
@click.option(
    "--l2",
    "lambdas",
    type=click.FloatRange(min=0),
    multiple=True,
    help="λ, which draws the layers' weights together; give several to compare.  [1, 0.001]",
)
def command(lambdas: tuple[float, ...], **options: Any) -> None:
    """Train TASK without ELMo, with its last layer only, and with a learned average of all layers.

    The average is learned with a strong and a weak pull to equal weights (λ). The table has the
    score over the same seeds, the gain over the baseline, what all layers bring over the last
    alone, and the paper's scores where it has some; below it, what the layers weigh.

    Runs are kept in DIR, where the same command goes on with what was interrupted, and where `elmo
    task compare` and the other analyses of the task find them too.

    \b
    elmo analyze layers ner --train train.conll --dev dev.conll --test test.conll --runs runs
    elmo analyze layers nli --train train.jsonl --dev dev.jsonl --runs runs --l2 10 --l2 0.001
    """
    from functools import partial

    from elmokit.probe.tasks.choices import LAMBDAS, compare_layers

    run("layers", partial(compare_layers, lambdas=lambdas or LAMBDAS), **options)
