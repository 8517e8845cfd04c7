"""`elmo task train`: train a task model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmokit.cli.task.options import TaskOptions, task_options

if TYPE_CHECKING:
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trained import Trained


@click.command("train", short_help="Train a task model.")
@task_options(
    seed=click.option("--seed", type=click.IntRange(min=0), show_default="0", help="Random seed."),
    share=click.option(
        "--share",
        type=click.FloatRange(0, 1, min_open=True),
        show_default="1",
        help="Fraction of the training set to use.",
    ),
)
@click.option("--out", required=True, metavar="DIR", help="Directory to save the model in.")
@click.option("--resume", is_flag=True, help="Continue the interrupted run in DIR.")
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Threads for the task model; ELMo's layers are computed with all cores.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
def command(options: TaskOptions, out: str, resume: bool, threads: int, as_json: bool) -> None:
    """Train a model of the task NAME and save it in DIR.

    NAME is qa, nli, srl, coref, ner or sentiment. The model is that of the task's paper, with ELMo
    beside its word vectors (and beside its encoder's output, where the ELMo paper uses it there as
    well); --elmo none trains the same model without ELMo. ELMo's layers are computed once and
    stored in the cache directory.

    The development set is scored after every epoch, and the best epoch is saved. Ctrl-C stops the
    run; the same command with --resume continues it, and ends in the same model.

    \b
    elmo task train ner --train train.conll --dev dev.conll --out my-ner
    elmo task train nli --train train.jsonl --dev dev.jsonl --out my-nli --elmo none
    elmo task train sentiment --train train.txt --dev dev.txt --out two --size classes=2

    In Python: `elmokit.tasks.fit`.
    """
    from elmokit import tasks
    from elmokit.extras import require

    require("torch", "Task models")
    settings = _resumed_settings(Path(out).expanduser(), options) if resume else options.settings()
    train, dev = (tasks.read(options.task, path) for path in (options.train, options.dev))
    for name, examples in (("train", train), ("dev", dev)):
        for reason, count in sorted(examples.skipped.items()):
            click.echo(f"{name}: {count:,} skipped: {reason}", err=True)
    try:
        trained = tasks.fit(
            settings, train, dev, out, resume=resume, threads=threads, progress=True
        )
    except KeyboardInterrupt:
        click.echo("stopped; to continue, give the same command with --resume", err=True)
        sys.exit(130)
    if unseen := trained.metadata["unseen_labels"]:
        labels = ", ".join(f"{label} ({count})" for label, count in unseen.items())
        click.echo(
            f"elmo: warning: {options.dev} has labels that are not in the training set: {labels}",
            err=True,
        )
    if as_json:
        click.echo(json.dumps({"model": out, "scores": trained.scores, **trained.metadata}))
    else:
        _print_result(trained, out)


def _resumed_settings(directory: Path, options: TaskOptions) -> Settings:
    """Return the settings of the run to resume; `fit` rejects options that differ from them."""
    from elmokit.tasks.plan import PLAN, TRAINING, read_plan
    from elmokit.tasks.settings import Settings

    settings = {**read_plan(directory)["settings"], "task": options.task}
    if "placement" in options.changes:
        settings.pop("place", None)
    return Settings.from_dict(settings | options.changes, str(directory / TRAINING / PLAN))


def _print_result(trained: Trained, out: str) -> None:
    from rich.console import Console

    from elmokit.cli.task.tables import scores_table, weights_lines

    console = Console(highlight=False)
    metadata, task = trained.metadata, trained.settings.definition
    console.print(scores_table(trained.scores, task.main_score))
    console.print(
        f"epoch {metadata['best_epoch']} of {metadata['epochs']}, "
        f"{metadata['train']['examples']:,} examples, {metadata['seconds']:.0f} s",
        style="dim",
    )
    for line in weights_lines(trained.model.words.layer_weights()):
        console.print(line)
    arguments = " ".join(f'"{name}"' for name in task.arguments)
    console.print(f"model   {out}", soft_wrap=True)
    console.print(f"next    elmo task eval {out} FILE", soft_wrap=True)
    console.print(f"        elmo task predict {out} {arguments}", soft_wrap=True)
