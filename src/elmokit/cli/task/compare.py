"""`elmo task compare`: what ELMo brings to a task."""

from __future__ import annotations

import json
from typing import Any

import click

from elmokit.cli.task.options import TASKS, choices, given


@click.command("compare", short_help="Baseline and ELMo with the same seeds, in a table.")
@click.argument("task", metavar="NAME", type=click.Choice(TASKS))
@choices
@click.option("--test", metavar="FILE", help="What both are scored on.  [the development set]")
@click.option("--out", required=True, metavar="DIR", help="Where the runs are kept.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="How many runs each."
)
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    help="Part of the training set; give several to compare.  [1]",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at a time.  [one for each core]")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON.")
def command(
    task: str,
    train: str,
    dev: str,
    test: str | None,
    out: str,
    seeds: int,
    shares: tuple[float, ...],
    jobs: int | None,
    as_json: bool,
    sizes: tuple[str, ...],
    **chosen: Any,
) -> None:
    """Train a task's model without and with ELMo, with the same seeds, and compare them.

    The table has mean and spread of the score, the gain, how much of the baseline's error it takes
    away, and how many seeds ELMo wins; below it, how the layers are weighted. Runs are kept in DIR,
    where the same command finds what was done before; comparison.json there has all numbers.

    \b
    elmo task compare ner --train train.conll --dev dev.conll --test test.conll --out runs
    elmo task compare nli --train train.jsonl --dev dev.jsonl --out runs --share 1 --share 0.1
    """
    from pathlib import Path

    from rich.console import Console

    from elmokit.cli.task.tables import comparison_table, weights_lines
    from elmokit.cli.task.watching import Watching
    from elmokit.tasks.comparison import compare
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Files
    from elmokit.text.files import write_text

    settings = Settings(task=task, **given(sizes, **chosen))
    with Watching() as watching:
        found = compare(
            settings,
            Files(train, dev, test),
            out,
            seeds=range(seeds),
            shares=shares or (1.0,),
            jobs=jobs,
            hear=watching.hear,
        )
    numbers = found.to_dict()
    place = Path(out).expanduser() / "comparison.json"
    write_text(place, json.dumps(numbers, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(numbers))
        return
    console = Console(highlight=False)
    console.print(comparison_table(found))
    for line in weights_lines(found.weights()):
        console.print(line)
