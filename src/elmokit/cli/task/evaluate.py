"""`elmo task eval`: score a trained task model on a file."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("eval", short_help="Score a task model on a file.")
@click.argument("model", metavar="DIR")
@click.argument("file")
@click.option(
    "--elmo",
    metavar="MODEL",
    show_default="the one of the training",
    help="ELMo model that the task model was trained with, if it was moved.",
)
@click.option(
    "--out", metavar="FILE", help="File for the predictions, as official scorers read them."
)
@click.option("--json", "as_json", is_flag=True, help="Print the scores as one line of JSON.")
def command(model: str, file: str, elmo: str | None, out: str | None, as_json: bool) -> None:
    """Score the task model in DIR on FILE, as the task's official scorer does.

    \b
    elmo task eval my-ner test.conll
    elmo task eval my-ner test.conll --out predictions.conll --json

    In Python: `elmokit.tasks.load` and `Trained.evaluate`.
    """
    from rich.console import Console

    from elmokit import tasks
    from elmokit.cli.task.predict import write_predictions
    from elmokit.cli.task.tables import scores_table
    from elmokit.extras import require
    from elmokit.progress import ProgressDisplay

    require("torch", "Task models")
    trained = tasks.load(model, elmo)
    task = trained.settings.definition
    examples = trained.prepare(tasks.read(task.name, file))
    for reason, count in sorted(examples.skipped.items()):
        click.echo(f"{count:,} skipped: {reason}", err=True)
    if problem := trained.describe_unknown_labels(examples):
        click.echo(f"elmo: warning: {problem}", err=True)
    with ProgressDisplay() as display:
        predictions = trained.predict_examples(examples.items, display.counter("predicting"))
    scores = task.score(examples.items, predictions)
    if out:
        write_predictions(task, examples.items, predictions, Path(out).expanduser())
    if as_json:
        result = {"model": model, "file": file, "examples": len(examples), "scores": scores}
        click.echo(json.dumps(result))
    else:
        Console(highlight=False).print(scores_table(scores, task.main_score))
