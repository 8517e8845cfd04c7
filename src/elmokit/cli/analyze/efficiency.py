"""`elmo analyze efficiency`: how much data and how many epochs ELMo saves."""

from __future__ import annotations

from functools import partial

import click

from elmokit.cli.analyze.options import AnalysisOptions, analysis_options, run_analysis


@click.command("efficiency", short_help="Compare scores with less data and fewer epochs.")
@analysis_options()
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    show_default="0.001, 0.01, 0.1 and 1",
    help="Fraction of the training set to use; repeat it for several.",
)
def command(options: AnalysisOptions, shares: tuple[float, ...]) -> None:
    """Train TASK with and without ELMo on parts of the training set.

    One table has the scores by size of the training set, the gain, and how little data ELMo needs
    to be as good as the baseline; the other one has, for the largest part, the epoch at which ELMo
    passes the baseline's best score on the development set. Two figures show the same.

    Runs are stored in DIR, where the same command continues an interrupted analysis, and where
    `elmo task compare` and the other analyses of the task find them too.

    \b
    elmo analyze efficiency srl --train train.jsonl --dev dev.jsonl --runs runs --epochs 10
    elmo analyze efficiency ner --train F --dev F --test F --runs runs --share 0.1 --share 1

    In Python: `elmokit.probe.sample_efficiency`.
    """
    from elmokit.probe.tasks.efficiency import SHARES, sample_efficiency

    run_analysis("efficiency", partial(sample_efficiency, shares=shares or SHARES), options)
