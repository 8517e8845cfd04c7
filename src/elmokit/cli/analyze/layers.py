"""`elmo analyze layers`: whether all layers are better than the last."""

from __future__ import annotations

from typing import Any

import click

from elmokit.cli.analyze.options import analysis


@click.command("layers", short_help="No ELMo, its last layer, all layers: which is best.")
@analysis("layers", "l2")
@click.option(
    "--l2",
    "lambdas",
    type=click.FloatRange(min=0),
    multiple=True,
    help="λ, which draws the layers' weights together; give several to compare.  [1, 0.001]",
)
def command(
    task: str,
    train: str,
    dev: str,
    test: str | None,
    runs: str,
    seeds: int,
    jobs: int | None,
    lambdas: tuple[float, ...],
    sizes: tuple[str, ...],
    out: str | None,
    as_json: bool,
    **chosen: Any,
) -> None:
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
    from elmokit.cli.measured import finish
    from elmokit.cli.task.options import given
    from elmokit.cli.task.watching import Watching
    from elmokit.probe.tasks.choices import LAMBDAS, compare_layers
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Files

    settings = Settings(task=task, **given(sizes, **chosen))
    with Watching() as watching:
        found = compare_layers(
            settings,
            Files(train, dev, test),
            runs,
            lambdas=lambdas or LAMBDAS,
            seeds=range(seeds),
            jobs=jobs,
            hear=watching.hear,
        )
    finish(found.measured(), out, as_json, f"layers-{task}")
