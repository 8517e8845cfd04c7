"""`elmo task train`: a task model from a training set."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.task.options import TASKS, choices, given

if TYPE_CHECKING:
    from elmokit.tasks.fitting import Progress
    from elmokit.tasks.task import Examples
    from elmokit.tasks.trained import Trained


@click.command("train", short_help="Train a task model.")
@click.argument("task", metavar="NAME", type=click.Choice(TASKS))
@choices
@click.option("--out", required=True, metavar="DIR", help="Where the model goes.")
@click.option("--seed", type=click.IntRange(min=0), help="Of all that is random.  [0]")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    help="The part of the training set to use.  [1]",
)
@click.option("--resume", is_flag=True, help="Go on with the run that stopped in DIR.")
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Cores for the task model; ELMo's layers are computed on all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as a line of JSON.")
def command(
    task: str,
    train: str,
    dev: str,
    out: str,
    resume: bool,
    threads: int,
    as_json: bool,
    sizes: tuple[str, ...],
    **chosen: Any,
) -> None:
    """Train a model of task NAME and save it in DIR.

    NAME is qa, nli, srl, coref, ner or sentiment. The model is the one of the task's paper, with
    ELMo beside its word vectors (and beside its top, where the ELMo paper has it there too); --elmo
    none is the same without. ELMo's layers are computed once and kept in the cache directory.

    After every epoch the development set is scored; the best epoch is kept. Ctrl-C stops between
    two steps, and the same command with --resume goes on, to the same model.

    \b
    elmo task train ner --train train.conll --dev dev.conll --out my-ner
    elmo task train nli --train train.jsonl --dev dev.jsonl --out my-nli --elmo none
    elmo task train sentiment --train train.txt --dev dev.txt --out two --size classes=2
    """
    import torch

    from elmokit import tasks
    from elmokit.tasks.fitting import fit

    torch.set_num_threads(threads)
    asked = given(sizes, **chosen)
    if resume:
        settings = _begun(Path(out).expanduser(), task, asked)
    else:
        settings = tasks.Settings(task=task, **asked)
    data = {name: tasks.read(task, path) for name, path in (("train", train), ("dev", dev))}
    for name, examples in data.items():
        _say_skipped(name, examples)
    try:
        with Watching(settings.sister.SCORE, settings.chosen.schooling.epochs) as watching:
            trained = fit(settings, data["train"], data["dev"], out, resume=resume, watch=watching)
    except KeyboardInterrupt:
        click.echo("stopped; to go on: the same command with --resume", err=True)
        sys.exit(130)
    if trained.about["unseen_labels"]:
        unseen = ", ".join(f"{name} ({n})" for name, n in trained.about["unseen_labels"].items())
        click.echo(f"elmo: warning: {dev} has labels that training never shows: {unseen}", err=True)
    facts = {"model": out, "scores": trained.scores, **trained.about}
    click.echo(json.dumps(facts)) if as_json else _show(trained, out)


def _begun(place: Path, task: str, asked: dict[str, Any]) -> Any:
    """The settings that a run began with; others are refused later, by name."""
    from elmokit.errors import TrainingError
    from elmokit.tasks.fitting import PLAN, TRAINING
    from elmokit.tasks.settings import Settings

    path = place / TRAINING / PLAN
    try:
        began = json.loads(path.read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError):
        raise TrainingError(
            f"there is no run in {place} to go on with; leave --resume out"
        ) from None
    return Settings.from_dict({**began, "task": task, **asked}, str(path))


def _say_skipped(name: str, examples: Examples[Any]) -> None:
    for reason, count in sorted(examples.skipped.items()):
        click.echo(f"{name}: {count:,} left out: {reason}", err=True)


def _show(trained: Trained, out: str) -> None:
    from rich.console import Console

    from elmokit.cli.task.tables import scores_table, weights_lines

    console = Console(highlight=False)
    about, sister = trained.about, trained.settings.sister
    console.print(scores_table(trained.scores, sister.SCORE))
    console.print(
        f"epoch {about['best_epoch']} of {about['epochs']}, {about['train']['examples']:,} "
        f"examples, {about['seconds']:.0f} s",
        style="dim",
    )
    for line in weights_lines(trained.model.words.weights()):
        console.print(line)
    asks = " ".join(f'"{name}"' for name in sister.ARGUMENTS)
    console.print(f"model   {out}", soft_wrap=True)
    console.print(f"next    elmo task eval {out} FILE", soft_wrap=True)
    console.print(f"        elmo task predict {out} {asks}", soft_wrap=True)


class Watching:
    """A progress bar on a terminal, and a line for each epoch; lines alone elsewhere."""

    def __init__(self, score: str, epochs: int) -> None:
        """`score` is the one that counts."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._score, self._epochs = score, epochs
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("reading")

    def __enter__(self) -> Watching:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def layers(self, done: int, of: int) -> None:
        """So many words have their layers."""
        self._bar.update(self._task, description="layers of ELMo", completed=done, total=of)

    def step(self, progress: Progress, batches: int) -> None:
        """A batch was learned from."""
        self._bar.update(
            self._task,
            description=f"epoch {progress.epoch + 1} of {self._epochs}, "
            f"loss {progress.loss / progress.batch:.3f}",
            completed=progress.batch,
            total=batches,
        )

    def epoch(self, noted: Mapping[str, Any]) -> None:
        """An epoch has ended."""
        mark = "  best so far" if noted["best"] else ""
        self._console.print(
            f"epoch {noted['epoch']:2}  loss {noted['loss']:8.4f}  "
            f"{self._score} {noted['scores'][self._score]:6.2f}{mark}"
        )
