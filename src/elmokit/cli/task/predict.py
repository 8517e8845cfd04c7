"""`elmo task predict`: what a trained task model says of a text."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from elmokit.tasks.task import Sister


@click.command("predict", short_help="Use a task model on a text or a file.")
@click.argument("model", metavar="DIR")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--file", "source", metavar="FILE", help="A data file; its own answers are ignored.")
@click.option("--out", metavar="FILE", help="With --file: where the answers go.  [stdout]")
@click.option("--elmo", metavar="MODEL", help="The biLM, if it is not where it was.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each answer.")
def command(
    model: str,
    texts: tuple[str, ...],
    source: str | None,
    out: str | None,
    elmo: str | None,
    as_json: bool,
) -> None:
    """Answer TEXT with the model in DIR.

    A task that takes two texts (nli: premise and hypothesis; qa: passage and question) gets them
    one after the other. Without TEXT and --file, lines are read from stdin, two texts separated by
    a tab. With --file the answers are written in the task's own format, as outside scorers read it.

    \b
    elmo task predict my-ner "Ada Lovelace lived in London."
    elmo task predict my-nli "A man plays a guitar." "Someone makes music." --json
    elmo task predict my-srl "She [gave] him a book."
    elmo task predict my-ner --file test.conll --out answers.conll
    """
    if texts and source:
        raise click.UsageError("give TEXT or --file, not both")
    if out and not source:
        raise click.UsageError("--out is for the answers to a --file")
    with _no_garbage():
        import torch
        from rich.console import Console

        from elmokit import tasks
        from elmokit.cli.bars import progress_bar

        torch.set_num_threads(1)
        trained = tasks.Trained.load(model, elmo)
    sister = trained.settings.sister
    if source:
        examples = tasks.read(trained.settings.task, source).items
        with progress_bar("answering") as tell:
            answers = trained.predict(examples, tell)
        if as_json:
            lines = (
                json.dumps(sister.record(*pair), ensure_ascii=False)
                for pair in zip(examples, answers, strict=True)
            )
            _write(lambda file: file.writelines(f"{line}\n" for line in lines), out)
        else:
            write_answers(sister, examples, answers, Path(out).expanduser() if out else None)
        return
    console = Console(highlight=False)
    for question in _questions(texts, len(sister.ARGUMENTS), sister.ARGUMENTS):
        example = trained.parse(question)
        answer = trained.predict([example])[0]
        if as_json:
            click.echo(json.dumps(sister.record(example, answer), ensure_ascii=False))
        else:
            console.print(sister.show(example, answer))


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Nothing of what is imported is garbage; looking for it would take a fifth of a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _questions(texts: Sequence[str], size: int, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in groups of as many as the task takes."""
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


def write_answers(
    sister: Sister, examples: Sequence[Any], answers: Sequence[Any], path: Path | None
) -> None:
    """In the task's own format, to a file or to stdout."""
    _write(lambda file: sister.write(file, examples, answers), path)


def _write(fill: Callable[[Any], object], path: str | Path | None) -> None:
    if path is None:
        fill(sys.stdout)
        return
    place = Path(path).expanduser()
    stage = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with stage.open("w", encoding="utf-8", newline="\n") as file:
            fill(file)
        os.replace(stage, place)
    finally:
        stage.unlink(missing_ok=True)
