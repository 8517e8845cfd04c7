"""Options that `elmo corpus`, `elmo pretrain` and `elmo finetune` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elmokit import progress

if TYPE_CHECKING:
    from elmokit.train.budget import Budget
    from elmokit.train.chunks import TextForm

F = TypeVar("F", bound=Callable[..., Any])

FASTER = {"amx": "several times as fast", "avx512_bf16": "about twice as fast"}
"""Instruction sets that multiply bfloat16, and how fast they train compared to float32."""


def _group(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that adds some options in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


form_options = _group(
    click.option(
        "--wrapped",
        is_flag=True,
        help="Paragraphs end at blank lines; they are wrapped over several lines.",
    ),
    click.option("--lines", is_flag=True, help="Each line is one sentence."),
    click.option(
        "--tokenized",
        is_flag=True,
        help="Each line is one sentence, with its words separated by spaces.",
    ),
    click.option("--column", metavar="NAME", help="Name of the text column in Parquet files."),
)
"""Add `--wrapped`, `--lines`, `--tokenized` and `--column`."""

valid_option = click.option(
    "--valid",
    multiple=True,
    metavar="TEXT",
    help="File, directory or pattern of held-out text. May be repeated.",
)
"""Add `--valid`."""


def budget_options(default_epochs: str = "") -> Callable[[F], F]:
    """Add `--minutes`, `--tokens` and `--epochs`, with the default budget in epochs if any."""
    default = f"  [default: {default_epochs}]" if default_epochs else ""
    return _group(
        click.option(
            "--minutes", type=float, help="Budget in minutes of training time, over all sessions."
        ),
        click.option(
            "--tokens", type=int, help="Budget in words read, ends of sentences included."
        ),
        click.option("--epochs", type=float, help=f"Budget in passes over the text.{default}"),
    )


def rate_option(default: str) -> Callable[[F], F]:
    """Add `--rate`."""
    return click.option("--rate", type=float, help=f"Peak learning rate.  [default: {default}]")


def batch_option(default: str) -> Callable[[F], F]:
    """Add `--batch`."""
    return click.option(
        "--batch",
        type=int,
        metavar="WORDS",
        help=f"Words per optimizer step, of whole sentences.  [default: {default}]",
    )


def dropout_option(default: str) -> Callable[[F], F]:
    """Add `--dropout`."""
    return click.option(
        "--dropout",
        type=float,
        help=f"Dropout probability of the inputs of each layer.  [default: {default}]",
    )


machine_options = _group(
    click.option(
        "--products",
        type=click.Choice(["float32", "bfloat16"]),
        help="How factors of matrix products are rounded. bfloat16 trains several times faster on "
        "CPUs with AMX, twice as fast with AVX512_BF16, and slower on others.  [default: float32]",
    ),
    click.option(
        "--shards",
        type=int,
        help="Parts of a batch that are computed in parallel.  [default: one per processor]",
    ),
    click.option("--seed", type=int, help="Random seed.  [default: 0]"),
    click.option(
        "--device",
        type=click.Choice(["cpu", "cuda"]),
        default="cpu",
        show_default=True,
        help="Device to train on.",
    ),
)
"""Add `--products`, `--shards`, `--seed` and `--device`."""

resume_options = _group(
    click.option("--resume", is_flag=True, help="Continue the run in --out where it was stopped."),
    click.option(
        "--auto-resume",
        is_flag=True,
        help="Start the run in --out, or continue it if it was started: for job scripts, which "
        "are run again with the same command.",
    ),
)
"""Add `--resume` and `--auto-resume`."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one line of JSON."
)
"""Add `--json`."""


def parse_form(wrapped: bool, lines: bool, tokenized: bool) -> TextForm:
    """Return what a line of the text is, according to the options."""
    chosen: list[TextForm] = []
    if wrapped:
        chosen.append("wrapped")
    if lines:
        chosen.append("lines")
    if tokenized:
        chosen.append("tokenized")
    if len(chosen) > 1:
        raise click.UsageError(f"give {' or '.join(f'--{form}' for form in chosen)}, not both")
    return chosen[0] if chosen else "running"


def parse_budget(minutes: float | None, tokens: int | None, epochs: float | None) -> Budget | None:
    """Return the budget according to the options, or None if there is none."""
    from elmokit.train.budget import Budget

    limits = {"minutes": minutes, "tokens": tokens, "epochs": epochs}
    names = [f"--{name}" for name, value in limits.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"give {' or '.join(names)}, not both")
    return Budget(minutes=minutes, tokens=tokens, epochs=epochs) if names else None


def check_resume(resume: bool, auto_resume: bool) -> None:
    """Raise if both options are given."""
    if resume and auto_resume:
        raise click.UsageError("give --resume or --auto-resume, not both")


def suggest_products(products: str | None, device: str) -> None:
    """Say in a terminal that `--products bfloat16` would be faster, on a CPU where it would."""
    from elmokit.engine import native

    watched = products is None and device == "cpu" and progress.is_terminal()
    if not watched or not native.kernel_available():
        return
    isa = native.instruction_set("bfloat16")
    if isa in FASTER:
        click.echo(
            f"this CPU multiplies bfloat16 ({isa}): with --products bfloat16 it would train "
            f"{FASTER[isa]}",
            err=True,
        )


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in values.items() if value is not None}
