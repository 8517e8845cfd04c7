"""`elmo finetune`: a model adapted to a domain."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.bars import told_bar, watched

if TYPE_CHECKING:
    from elmokit.lm import Perplexity
    from elmokit.text.vocabulary import Vocabulary
    from elmokit.train.budget import Budget
    from elmokit.train.finetuning import Adapted
    from elmokit.train.recipe import Recipe
    from elmokit.train.run import Report

EPOCHS = 3.0
"""The budget where none is given; early stopping ends it before if it is too much."""
ALLENNLP = "allennlp"
LINE_SECONDS = 30
"""Between two lines of progress where there is no terminal."""


@click.command("finetune", short_help="Adapt a model to a domain.")
@click.argument("model")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-o", "--out", required=True, type=click.Path(), help="The directory to make.")
@click.option("--minutes", type=float, help="How long at most, by the clock.")
@click.option("--tokens", type=int, help="How long at most, in words read.")
@click.option("--epochs", type=float, help="How long, in readings of the text.  [default: 3]")
@click.option("--valid", multiple=True, metavar="TEXT", help="Held-out text. May be repeated.")
@click.option(
    "--general", multiple=True, metavar="TEXT", help="Text of the old domain, to see what is lost."
)
@click.option(
    "--extend",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also learn to predict the N most frequent words that the model's vocabulary lacks.",
)
@click.option(
    "--vocabulary",
    type=click.IntRange(min=4),
    metavar="N",
    help="Words to predict, for a model that has no softmax.  [default: 30000]",
)
@click.option("--vocabulary-file", type=click.Path(), help="The same as a vocab.txt.")
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Stop after so many looks at held-out text that found nothing better.",
)
@click.option("--wrapped", is_flag=True, help="A blank line ends a paragraph, a line does not.")
@click.option("--lines", is_flag=True, help="A line is a sentence.")
@click.option("--tokenized", is_flag=True, help="A line is a sentence, its words between spaces.")
@click.option("--column", metavar="NAME", help="The text's column in Parquet files.")
@click.option("--format", "also", type=click.Choice([ALLENNLP]), help="Save in this one, too.")
@click.option("--resume", is_flag=True, help="Go on with what was stopped in --out.")
@click.option("--rate", type=float, help="The highest learning rate.")
@click.option("--batch", type=int, metavar="WORDS", help="Of a step.")
@click.option("--dropout", type=float, help="The part of what a layer reads that is dropped.")
@click.option("--shards", type=int, help="Parts of a step.  [default: one a processor]")
@click.option("--seed", type=int, help="Of all that is random.  [default: 0]")
@click.option(
    "--evaluation-words",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Of held-out text, at each look, and of --general.",
)
@click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="Where."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as a line of JSON.")
def command(
    model: str,
    texts: tuple[str, ...],
    out: str,
    minutes: float | None,
    tokens: int | None,
    epochs: float | None,
    valid: tuple[str, ...],
    general: tuple[str, ...],
    extend: int,
    vocabulary: int | None,
    vocabulary_file: str | None,
    patience: int,
    wrapped: bool,
    lines: bool,
    tokenized: bool,
    column: str | None,
    also: str | None,
    resume: bool,
    evaluation_words: int,
    device: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Adapt MODEL to the domain of TEXT: go on learning there, and keep the best.

    TEXT is read as `elmo corpus` reads it: a file, a directory, a pattern, or - for stdin; or it is
    a directory that `elmo corpus` made with the model's vocabulary. Some of it is held out, unless
    --valid names text for that: its perplexity, by the full softmax, says which weights are the
    best, and when it gets no lower the run stops. Ctrl-C stops it too, and keeps the best so far;
    the same command with --resume goes on from there.

    A model without softmax, such as the published HDF5 files, can be adapted too: it learns one
    first, while its network stays as it is, and that is then its perplexity before.

    --out gets the model, and with --format allennlp also allennlp/options.json and weights.hdf5.

    \b
    elmo finetune builtin papers.txt.xz --out biomed --minutes 10
    elmo finetune DIR reviews/ --general news.txt --out adapted --extend 2000
    elmo finetune elmo_weights.hdf5 tweets.txt --lines --out tweets --format allennlp
    """
    forms = {"wrapped": wrapped, "lines": lines, "tokenized": tokenized}
    chosen = [form for form, asked in forms.items() if asked]
    if len(chosen) > 1:
        raise click.UsageError(f"give {' or '.join(f'--{form}' for form in chosen)}, not both")
    if vocabulary is not None and vocabulary_file is not None:
        raise click.UsageError("give --vocabulary or --vocabulary-file, not both")
    if "-" in texts and "-" in (*valid, *general):
        raise click.UsageError("stdin can be read once: give - once")
    budget = _budget(minutes, tokens, epochs)
    given = {name: value for name, value in given.items() if value is not None}
    if resume and (given or minutes or tokens or epochs or extend or vocabulary):
        raise click.UsageError(
            "a run is resumed with the choices that it began with: give --resume, MODEL, TEXT, "
            "--out and --general only"
        )

    from elmokit.train import finetuning as train
    from elmokit.train.domain import Domain

    form = chosen[0] if chosen else "running"
    domain = Domain(texts, form, column, valid)  # type: ignore[arg-type]
    watching = _Watching()
    how: dict[str, Any] = {"general": general, "device": device, "watch": watching.hear}
    try:
        with watching:
            if resume:
                adapted = train.resume(model, domain, out, **how)
            else:
                bilm = train.load_model(model)
                adapted = train.finetune(
                    bilm,
                    domain,
                    out,
                    budget=budget,
                    recipe=_recipe(train.recipe_for(bilm), given, device),
                    extend=extend,
                    vocabulary=_vocabulary(vocabulary, vocabulary_file),
                    patience=patience,
                    evaluation_words=evaluation_words,
                    report=watching.reading,
                    **how,
                )
    except KeyboardInterrupt:
        place = Path(out).expanduser()
        if not (place / "training" / "finetune.json").exists():
            raise
        best = f"{out} has the best so far; " if (place / "manifest.json").exists() else ""
        click.echo(f"stopped; {best}to go on: the same with --resume", err=True)
        sys.exit(130)
    files = _export(adapted, Path(out).expanduser()) if also else []
    facts = {"model": out, "fingerprint": adapted.elmo.bilm.fingerprint, **adapted.to_dict()}
    if as_json:
        click.echo(json.dumps(facts))
    else:
        _show(adapted, out, files)


def _budget(minutes: float | None, tokens: int | None, epochs: float | None) -> Budget:
    from elmokit.train.budget import Budget

    given = {"minutes": minutes, "tokens": tokens, "epochs": epochs}
    names = [f"--{name}" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"give {' or '.join(names)}, not both")
    if not names:
        epochs = EPOCHS
    return Budget(minutes=minutes, tokens=tokens, epochs=epochs)


def _vocabulary(size: int | None, file: str | None) -> Vocabulary | int | None:
    from elmokit.errors import FormatError
    from elmokit.text.vocabulary import Vocabulary

    if file is None:
        return size
    words = Vocabulary.read(Path(file).expanduser())
    if missing := words.missing_marks():
        raise FormatError(
            f"{file} lacks {', '.join(missing)}; expected <S>, </S> and <UNK>, then the words by "
            "falling frequency, one a line"
        )
    return words


def _recipe(recipe: Recipe, given: dict[str, Any], device: str) -> Recipe:
    from elmokit.engine.native import usable_processors
    from elmokit.train.recipe import shards_for

    recipe = recipe.replace(**given)
    if "shards" in given:
        return recipe
    return recipe.replace(
        shards=shards_for(recipe, usable_processors() if device == "cpu" else 1, 1)
    )


def _export(adapted: Adapted, out: Path) -> list[Path]:
    from elmokit import formats

    return formats.write(adapted.elmo.bilm, out / ALLENNLP, ALLENNLP)


# -- what is shown -------------------------------------------------------------------------------


def _show(adapted: Adapted, out: str, files: list[Path]) -> None:
    """Both domains in one table."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for i, name in enumerate(("perplexity", "", "forward", "backward", "mean", "words", "oov")):
        table.add_column(name, justify="left" if i < 2 else "right")
    pairs: list[tuple[str, tuple[Perplexity, Perplexity]]] = [
        ("domain", (adapted.before, adapted.after))
    ]
    if adapted.general is not None:
        pairs.append(("general", adapted.general))
    for name, (before, after) in pairs:
        for label, when, found, style in (
            (name, "before", before, ""),
            ("", "after", after, "bold"),
        ):
            numbers = (f"{value:,.2f}" for value in (found.forward, found.backward, found.mean))
            table.add_row(
                label, when, *numbers, f"{found.words:,}", f"{found.oov:.2%}", style=style
            )
    console.print(table)
    why = "nothing better since" if adapted.stopped_early else "the whole budget"
    rows = [
        ("steps", f"{adapted.steps:,}, the best after {adapted.best_step:,} ({why})"),
        ("vocabulary", f"{len(adapted.elmo.bilm.vocabulary or ()):,} words"),
        ("model", out),
        *(("", str(file)) for file in files),
    ]
    for label, value in rows:
        console.print(f"{label:<12} {value}", soft_wrap=True)


class _Watching:
    """A bar on stderr while text is read and the model learns; else a line now and then."""

    def __init__(self) -> None:
        self._lines, self._printed = not watched(), time.monotonic()
        self._bar = told_bar(disable=self._lines)
        self._task = self._bar.add_task("", total=None, told="opening the model")

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def reading(self, position: int, size: int | None, words: int) -> None:
        """The text is read."""
        self._bar.update(
            self._task, completed=position, total=size, told=f"reading: {words:,} words"
        )

    def hear(self, report: Report) -> None:
        """After every step."""
        parts = [
            f"{report.progress.tokens:,} words",
            f"{report.speed:,.0f}/s",
            f"loss {report.loss:.2f}",
        ]
        if report.held_out is not None:
            parts.append(f"held out {report.held_out.forward:.1f}/{report.held_out.backward:.1f}")
        told = "  ".join(parts)
        self._bar.update(self._task, completed=report.spent, total=1.0, told=told)
        now = time.monotonic()
        if self._lines and now - self._printed >= LINE_SECONDS:
            self._printed = now
            click.echo(f"{report.spent:6.1%}  {told}", err=True)
