"""`elmo analyze layers`: whether all layers are better than the last."""

from __future__ import annotations

from functools import partial

import click

from elmokit.cli.analyze.options import AnalysisOptions, analysis_options, run_analysis


@click.command("layers", short_help="Compare no ELMo, its last layer, and all layers.")
@analysis_options("layers", "l2")
@click.option(
    "--l2",
    "lambdas",
    type=click.FloatRange(min=0),
    multiple=True,
    show_default="1 and 0.001",
    help="Strength λ of the penalty that keeps the layer weights close; repeat it for several.",
)
def command(options: AnalysisOptions, lambdas: tuple[float, ...]) -> None:
    """Train TASK without ELMo, with its last layer only, and with a learned average of all layers.

    The average is learned with a strong and a weak penalty λ that keeps the layer weights close to
    each other. The table has the scores over the same seeds, the gain over the baseline, the gain
    of all layers over the last alone, and the paper's scores where it has some; below it are the
    layer weights.

    Runs are stored in DIR, where the same command continues an interrupted analysis, and where
    `elmo task compare` and the other analyses of the task find them too.

    \b
    elmo analyze layers ner --train train.conll --dev dev.conll --test test.conll --runs runs
    elmo analyze layers nli --train train.jsonl --dev dev.jsonl --runs runs --l2 10 --l2 0.001

    In Python: `elmokit.probe.compare_layers`.
    """
    from elmokit.probe.tasks.variants import LAMBDAS, compare_layers

    run_analysis("layers", partial(compare_layers, lambdas=lambdas or LAMBDAS), options)
