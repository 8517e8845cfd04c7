"""`elmo task eval`: how good a trained task model is on a file."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("eval", short_help="Score a task model on a file.")
@click.argument("model", metavar="DIR")
@click.argument("file")
@click.option("--elmo", metavar="MODEL", help="The biLM, if it is not where it was.")
@click.option("--out", metavar="FILE", help="Also write the answers, as outside scorers read them.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as a line of JSON.")
def command(model: str, file: str, elmo: str | None, out: str | None, as_json: bool) -> None:
    """Score the model in DIR on FILE, as the task's official scorer would.

    \b
    elmo task eval my-ner test.conll
    elmo task eval my-ner test.conll --out answers.conll --json
    """
    import torch
    from rich.console import Console

    from elmokit import tasks
    from elmokit.cli.bars import progress_bar
    from elmokit.cli.task.predict import write_answers
    from elmokit.cli.task.tables import scores_table

    torch.set_num_threads(1)
    trained = tasks.Trained.load(model, elmo)
    settings = trained.settings
    examples = trained.prepare(tasks.read(settings.task, file), training=False)
    for reason, count in sorted(examples.skipped.items()):
        click.echo(f"{count:,} left out: {reason}", err=True)
    with progress_bar("answering") as tell:
        answers = trained.predict(examples.items, tell)
    scores = settings.sister.score(examples.items, answers)
    if out:
        write_answers(settings.sister, examples.items, answers, Path(out).expanduser())
    if as_json:
        facts = {"model": model, "file": file, "examples": len(examples), "scores": scores}
        click.echo(json.dumps(facts))
    else:
        Console(highlight=False).print(scores_table(scores, settings.sister.SCORE))
