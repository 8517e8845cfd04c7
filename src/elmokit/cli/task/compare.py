"""`elmo task compare`: compare a task's model without and with ELMo."""

from __future__ import annotations

import json
from pathlib import Path

import click

from elmokit.cli.task.options import TaskOptions, task_options


@click.command("compare", short_help="Compare the baseline and ELMo with the same seeds.")
@task_options()
@click.option(
    "--test",
    metavar="FILE",
    show_default="the development data",
    help="Test data that all models are scored on.",
)
@click.option("--out", required=True, metavar="DIR", help="Directory to store the runs in.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of random seeds, and so of runs of each system.",
)
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    show_default="1",
    help="Fraction of the training set to use; repeat it to compare several.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    show_default="one per core",
    help="Number of runs at a time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON.")
def command(
    options: TaskOptions,
    test: str | None,
    out: str,
    seeds: int,
    shares: tuple[float, ...],
    jobs: int | None,
    as_json: bool,
) -> None:
    """Train a task's model without and with ELMo, with the same seeds, and compare their scores.

    The table has the mean and the standard deviation of the score, the gain, the reduction of the
    baseline's error, and the number of seeds with which ELMo wins; below it are the layer weights.
    Runs are stored in DIR, where the same command finds those that are done; all numbers are in its
    comparison.json.

    \b
    elmo task compare ner --train train.conll --dev dev.conll --test test.conll --out runs
    elmo task compare nli --train train.jsonl --dev dev.jsonl --out runs --share 1 --share 0.1

    In Python: `elmokit.tasks.compare`.
    """
    from rich.console import Console

    from elmokit.cli.task.tables import comparison_table, weights_lines
    from elmokit.storage import write_text
    from elmokit.tasks import compare

    settings, files = options.settings(), options.files(test)
    comparison = compare(
        settings,
        files,
        out,
        seeds=range(seeds),
        shares=shares or (1.0,),
        jobs=jobs,
        progress=True,
    )
    numbers = comparison.to_dict()
    path = Path(out).expanduser() / "comparison.json"
    write_text(path, json.dumps(numbers, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(numbers))
        return
    console = Console(highlight=False)
    console.print(comparison_table(comparison))
    for line in weights_lines(comparison.weights()):
        console.print(line)
