"""`elmo finetune`: adapt a model to other text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.paths import PATH
from elmokit.cli.training_display import TrainingDisplay, describe_stop
from elmokit.cli.training_options import (
    batch_option,
    budget_options,
    check_resume,
    dropout_option,
    form_options,
    json_option,
    machine_options,
    parse_budget,
    parse_form,
    rate_option,
    resume_options,
    suggest_products,
    valid_option,
    without_none,
)

if TYPE_CHECKING:
    from elmokit.bilm.model import BiLM
    from elmokit.lm import Perplexity
    from elmokit.train.finetuning import FinetuneResult
    from elmokit.train.recipe import Recipe

ALLENNLP = "allennlp"


@click.command("finetune", short_help="Adapt a model to other text.")
@click.argument("model")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-o", "--out", required=True, type=PATH, help="Directory to create.")
@budget_options("3")
@valid_option
@click.option(
    "--general",
    multiple=True,
    metavar="TEXT",
    help="Text of the old domain, to see how much the model forgets. May be repeated.",
)
@click.option(
    "--extend",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Number of frequent words of TEXT to add to the model's vocabulary.",
)
@click.option(
    "--vocabulary",
    type=click.IntRange(min=4),
    metavar="N",
    help="Number of words to predict, for a model without a softmax.  [default: 30000]",
)
@click.option(
    "--vocabulary-file",
    type=PATH,
    help="A vocab.txt with the words to predict, for a model without a softmax.",
)
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Stop after N evaluations without improvement.",
)
@form_options
@click.option(
    "--format",
    "export_format",
    type=click.Choice([ALLENNLP]),
    help="Also save the model in this format.",
)
@resume_options
@rate_option("0.004, less for models of more than 512 cells")
@batch_option("1120")
@dropout_option("0.1")
@machine_options
@click.option(
    "--evaluation-words",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="WORDS",
    help="Words of held-out text per evaluation, and of --general.",
)
@json_option
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
    export_format: str | None,
    resume: bool,
    auto_resume: bool,
    rate: float | None,
    batch: int | None,
    dropout: float | None,
    products: str | None,
    shards: int | None,
    seed: int | None,
    device: str,
    evaluation_words: int,
    as_json: bool,
) -> None:
    """Adapt MODEL to the domain of TEXT: train it further, and keep the best weights.

    TEXT is read as by `elmo corpus`: a file, a directory, a pattern, or - for stdin; or it is a
    corpus that `elmo corpus` made with the model's vocabulary. Part of it is held out, unless
    --valid names text for that. The weights with the lowest perplexity on held-out text are kept,
    and the run stops when it no longer falls, or when the budget is spent: three epochs, unless
    --minutes, --tokens or --epochs sets another. Ctrl-C stops it too, and keeps the best weights so
    far; the same command with --resume continues from there. SIGTERM and SIGUSR1, which schedulers
    send before they end a job, do the same with exit code 0; with --auto-resume the same command
    starts the run, continues it, and does nothing once it has ended.

    A model without a softmax, such as the published HDF5 files, first trains one while its network
    stays unchanged; "before" is then its perplexity with this softmax.

    --out gets the model, and with --format allennlp also allennlp/options.json and weights.hdf5.

    \b
    elmo finetune builtin papers.txt.xz --out biomed --minutes 10
    elmo finetune DIR reviews/ --general news.txt --out adapted --extend 2000
    elmo finetune elmo_weights.hdf5 tweets.txt --lines --out tweets --format allennlp

    In Python: `elmokit.train.finetune` and `elmokit.train.resume_finetune`.
    """
    form = parse_form(wrapped, lines, tokenized)
    if vocabulary is not None and vocabulary_file is not None:
        raise click.UsageError("give --vocabulary or --vocabulary-file, not both")
    if "-" in texts and "-" in (*valid, *general):
        raise click.UsageError("stdin can be read only once; give - only once")
    check_resume(resume, auto_resume)
    budget = parse_budget(minutes, tokens, epochs)
    changes = without_none(
        {
            "rate": rate,
            "batch": batch,
            "dropout": dropout,
            "products": products,
            "shards": shards,
            "seed": seed,
        }
    )
    if resume and (changes or budget or extend or vocabulary):
        raise click.UsageError(
            "a run is resumed with the options that it was started with; give only --resume, "
            "MODEL, TEXT, --out and --general"
        )

    from elmokit.train import TextSource, TrainingStopped, finetune, resume_finetune
    from elmokit.train.build import read_vocabulary
    from elmokit.train.finetuning import clean_up, has_finished, load_trainable

    if (resume or auto_resume) and has_finished(Path(out).expanduser()):
        clean_up(Path(out).expanduser())
        click.echo(f"{out}: the run has ended, and its model is there; nothing to do")
        return
    source = TextSource(texts, form, column, valid)
    if not (resume or auto_resume):
        suggest_products(products, device)
    try:
        with TrainingDisplay("opening the model") as display:
            if resume:
                result = resume_finetune(
                    model, source, out, general=general, device=device, on_step=display.on_step
                )
            else:
                bilm = load_trainable(model)
                result = finetune(
                    bilm,
                    source,
                    out,
                    budget=budget,
                    recipe=_make_recipe(bilm, changes, device),
                    extend=extend,
                    vocabulary=read_vocabulary(vocabulary_file) if vocabulary_file else vocabulary,
                    general=general,
                    patience=patience,
                    device=device,
                    evaluation_words=evaluation_words,
                    auto_resume=auto_resume,
                    on_chunk=display.on_chunk,
                    on_step=display.on_step,
                )
    except TrainingStopped:
        click.echo(describe_stop(Path(out).expanduser()), err=True)
        sys.exit(0)
    except KeyboardInterrupt:
        directory = Path(out).expanduser()
        if not (directory / "training" / "finetune.json").exists():
            raise
        best = f"{out} has the best so far; " if (directory / "manifest.json").exists() else ""
        click.echo(f"stopped; {best}to continue, give the same command with --resume", err=True)
        sys.exit(130)
    files = _export(result, Path(out).expanduser()) if export_format else []
    if as_json:
        fingerprint = result.elmo.bilm.fingerprint
        click.echo(json.dumps({"model": out, "fingerprint": fingerprint, **result.to_dict()}))
    else:
        _print_result(result, out, files)


def _make_recipe(bilm: BiLM, changes: dict[str, Any], device: str) -> Recipe:
    from elmokit.train.finetuning import default_recipe
    from elmokit.train.pretraining import with_shards

    recipe = default_recipe(bilm).replace(**changes)
    return recipe if "shards" in changes else with_shards(recipe, device)


def _export(result: FinetuneResult, out: Path) -> list[Path]:
    from elmokit import formats

    return formats.write(result.elmo.bilm, out / ALLENNLP, ALLENNLP)


def _print_result(result: FinetuneResult, out: str, files: list[Path]) -> None:
    """Print a table of perplexities, and where the model is."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for i, name in enumerate(("perplexity", "", "forward", "backward", "mean", "words", "oov")):
        table.add_column(name, justify="left" if i < 2 else "right")
    pairs: list[tuple[str, tuple[Perplexity, Perplexity]]] = [
        ("domain", (result.before, result.after))
    ]
    if result.general is not None:
        pairs.append(("general", result.general))
    for name, (before, after) in pairs:
        for label, when, measured, style in (
            (name, "before", before, ""),
            ("", "after", after, "bold"),
        ):
            values = (measured.forward, measured.backward, measured.mean)
            table.add_row(
                label,
                when,
                *(f"{value:,.2f}" for value in values),
                f"{measured.words:,}",
                f"{measured.oov:.2%}",
                style=style,
            )
    console.print(table)
    reason = "no improvement since" if result.stopped_early else "the budget is spent"
    rows = [
        ("steps", f"{result.steps:,}; the best after {result.best_step:,} ({reason})"),
        ("vocabulary", f"{len(result.elmo.bilm.vocabulary or ()):,} words"),
        ("model", out),
        *(("", str(file)) for file in files),
    ]
    for label, value in rows:
        console.print(f"{label:<12} {value}", soft_wrap=True)
