"""`elmo analyze efficiency`: how much data and how many epochs ELMo saves."""

from __future__ import annotations

from typing import Any

import click

from elmokit.cli.analyze.options import analysis


@click.command("efficiency", short_help="Scores with less data and after fewer epochs.")
@analysis()
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    help="Part of the training set; give several.  [0.001, 0.01, 0.1, 1]",
)
def command(
    task: str,
    train: str,
    dev: str,
    test: str | None,
    runs: str,
    seeds: int,
    jobs: int | None,
    shares: tuple[float, ...],
    sizes: tuple[str, ...],
    out: str | None,
    as_json: bool,
    **chosen: Any,
) -> None:
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
    from elmokit.cli.measured import finish
    from elmokit.cli.task.options import given
    from elmokit.cli.task.watching import Watching
    from elmokit.probe.tasks.efficiency import SHARES, sample_efficiency
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Files

    settings = Settings(task=task, **given(sizes, **chosen))
    with Watching() as watching:
        found = sample_efficiency(
            settings,
            Files(train, dev, test),
            runs,
            shares=shares or SHARES,
            seeds=range(seeds),
            jobs=jobs,
            hear=watching.hear,
        )
    finish(found.measured(), out, as_json, f"efficiency-{task}")
