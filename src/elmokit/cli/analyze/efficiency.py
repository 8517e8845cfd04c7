"""`elmo analyze efficiency`: how much data and how many epochs ELMo saves."""

from __future__ import annotations

from typing import Any

import click

from elmokit.cli.analyze.options import analysis, run


@click.command("efficiency", short_help="Scores with less data and after fewer epochs.")
@analysis()
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    help="Part of the training set; give several.  [0.001, 0.01, 0.1, 1]",
)
def command(shares: tuple[float, ...], **options: Any) -> None:
    """Train TASK with and without ELMo on parts of the training set.

    One table has the scores by size, the gain, and with how little data ELMo is as good; another
    one, of the largest part, the epoch at which ELMo passes the best that the baseline ever has on
    the development set. Two pictures show the same.

    Runs are kept in DIR, where the same command goes on with what was interrupted, and where `elmo
    task compare` and the other analyses of the task find them too.

    \b
    elmo analyze efficiency srl --train train.jsonl --dev dev.jsonl --runs runs --epochs 10
    elmo analyze efficiency ner --train F --dev F --test F --runs runs --share 0.1 --share 1
    """
    from functools import partial

    from elmokit.probe.tasks.efficiency import SHARES, sample_efficiency

    run("efficiency", partial(sample_efficiency, shares=shares or SHARES), **options)
