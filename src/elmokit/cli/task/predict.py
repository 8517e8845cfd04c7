"""`elmo task predict`: use a trained task model on texts or a file."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from elmokit.tasks.task import Task


@click.command("predict", short_help="Use a task model on a text or a file.")
@click.argument("model", metavar="DIR")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--file",
    "source",
    metavar="FILE",
    help="Dataset file to predict, whose labels are ignored; with --text, a file of running text.",
)
@click.option(
    "--text",
    "running",
    is_flag=True,
    help="TEXT, stdin or FILE is running text: it is split into sentences, each with a prediction.",
)
@click.option(
    "--out",
    metavar="FILE",
    show_default="stdout",
    help="File for the predictions of --file.",
)
@click.option(
    "--elmo",
    metavar="MODEL",
    show_default="the one of the training",
    help="ELMo model that the task model was trained with, if it was moved.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per prediction.")
def command(
    model: str,
    texts: tuple[str, ...],
    source: str | None,
    running: bool,
    out: str | None,
    elmo: str | None,
    as_json: bool,
) -> None:
    """Print what the task model in DIR predicts for TEXT.

    A task that takes two texts (nli: premise and hypothesis; qa: passage and question) gets them
    one after the other. Without TEXT and --file, lines are read from stdin, two texts separated by
    a tab. With --file the predictions are written in the task's own format, as official scorers
    read it.

    --text splits running text into sentences. The predictions of a --file are then JSON lines, one
    per sentence, whose start_char and end_char are positions in the text of the file (as Python's
    open with encoding="utf-8-sig" reads it). --json prints the same for TEXT.

    \b
    elmo task predict my-ner "Ada Lovelace lived in London."
    elmo task predict my-nli "A man plays a guitar." "Someone makes music." --json
    elmo task predict my-srl "She [gave] him a book."
    elmo task predict my-ner --file test.conll --out predictions.conll
    elmo task predict my-ner --file news.txt --text --out entities.jsonl

    In Python: `elmokit.tasks.load`, `Trained.predict` and `Trained.predict_text`.
    """
    if texts and source:
        raise click.UsageError("give TEXT or --file, not both")
    if out and not source:
        raise click.UsageError("--out is for the predictions of a --file")
    with _without_garbage_collection():
        from rich.console import Console

        from elmokit import tasks
        from elmokit.extras import require
        from elmokit.progress import ProgressDisplay
        from elmokit.text.files import read_text

        require("torch", "Task models")
        trained = tasks.load(model, elmo)
    task = trained.settings.definition
    if running and len(task.arguments) > 1:
        raise click.UsageError(
            f"--text takes one text, and {task.name} takes {len(task.arguments)}: "
            f"{', '.join(task.arguments)}; leave it out"
        )
    if source and running:
        path = Path(out).expanduser() if out else None
        with ProgressDisplay() as display:
            records = trained.predict_text(read_text(source), display.counter("predicting"))
        lines = (json.dumps(record, ensure_ascii=False) for record in records)
        _write(lambda file: file.writelines(f"{line}\n" for line in lines), path)
        return
    if source:
        path = Path(out).expanduser() if out else None
        examples = tasks.read(task.name, source).items
        with ProgressDisplay() as display:
            predictions = trained.predict_examples(examples, display.counter("predicting"))
        if as_json:
            lines = (
                json.dumps(task.to_record(*pair), ensure_ascii=False)
                for pair in zip(examples, predictions, strict=True)
            )
            _write(lambda file: file.writelines(f"{line}\n" for line in lines), path)
        else:
            write_predictions(task, examples, predictions, path)
        return
    console = Console(highlight=False)
    parsed: Iterable[list[Any]]
    if running:
        parsed = map(trained.parse_text, texts or [sys.stdin.read()])
    else:
        parsed = ([trained.parse(group)] for group in _group_texts(texts, task.arguments))
    for examples in parsed:
        predictions = trained.predict_examples(examples)
        for example, prediction in zip(examples, predictions, strict=True):
            if as_json:
                click.echo(json.dumps(task.to_record(example, prediction), ensure_ascii=False))
            else:
                console.print(task.render(example, prediction))


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: during imports it takes a fifth of a second for nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _group_texts(texts: Sequence[str], names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts, or the lines of stdin, in groups of as many as the task takes."""
    size = len(names)
    if not texts:
        for number, line in enumerate(sys.stdin, start=1):
            if not line.strip():
                continue
            parts = line.rstrip("\n").split("\t") if size > 1 else [line.rstrip("\n")]
            if len(parts) != size:
                raise click.UsageError(
                    f"line {number} of stdin has {len(parts)} texts; expected {size}, separated by "
                    f"a tab: {', '.join(names)}"
                )
            yield parts
        return
    if len(texts) % size:
        raise click.UsageError(f"{len(texts)} texts given; expected {size}: {', '.join(names)}")
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def write_predictions(
    task: Task, examples: Sequence[Any], predictions: Sequence[Any], path: Path | None
) -> None:
    """Write predictions in the task's own format, to a file or to stdout."""
    _write(lambda file: task.write(file, examples, predictions), path)


def _write(fill: Callable[[TextIO], object], path: Path | None) -> None:
    if path is None:
        fill(sys.stdout)
        return
    from elmokit.storage import atomic_write

    with (
        atomic_write(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        fill(file)
