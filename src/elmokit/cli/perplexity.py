"""`elmo perplexity`: measure how well a model predicts a text."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from elmokit.cli.engine_options import device_option, dtype_option, threads_option
from elmokit.cli.text_options import text_form, text_options

if TYPE_CHECKING:
    from elmokit.lm.evaluation import Perplexity


@click.command("perplexity", short_help="Measure how well a model predicts a text.")
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@text_options
@click.option(
    "--words",
    type=click.IntRange(min=1),
    show_default="all",
    help="Stop after this many words.",
)
@click.option(
    "--state",
    type=click.Choice(["settled", "zero", "carry"]),
    default="settled",
    show_default=True,
    help="Initial state of each sentence; carry reads the text as one stream, as bilm-tf does.",
)
@dtype_option
@threads_option
@device_option
@click.option("--json", "as_json", is_flag=True, help="Print only the line of JSON.")
def command(
    model: str,
    files: tuple[str, ...],
    lines: bool,
    tokenized: bool,
    column: str | None,
    words: int | None,
    state: str,
    dtype: str,
    threads: int | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure how well MODEL predicts the text of FILE, forward and backward.

    Perplexity is exp of the mean loss over all words and the end of each sentence, by the full
    softmax; lower is better. Words that are not in the vocabulary count as <UNK>, so only models
    with the same vocabulary are comparable.

    FILE is read like the text of `elmo corpus`: UTF-8, plain or compressed, Parquet, a directory,
    or - for stdin. A line is a paragraph of running text, unless --lines or --tokenized is given.
    A directory made by `elmo corpus` stands for its held-out text. Several files are one text.

    The last line is JSON, with a signature of everything that determines the numbers. Its "data" is
    the SHA-256 of the sentences as they were read: a space between words, one sentence per line.

    \b
    elmo perplexity DIR test.txt
    elmo perplexity builtin news.txt.xz --words 100000
    elmo perplexity model.ckpt heldout.tokens --tokenized --state carry

    In Python: `elmokit.lm.perplexity`.
    """
    form = text_form(lines, tokenized)

    from elmokit.elmo import Elmo
    from elmokit.lm.evaluation import perplexity
    from elmokit.progress import ProgressDisplay
    from elmokit.train.text_reader import TextReader

    text = TextReader(files, form, column)
    elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads, device=device)
    start = time.perf_counter()
    with ProgressDisplay() as display:

        def show_progress(so_far: Perplexity) -> None:
            speed = so_far.words / (time.perf_counter() - start)
            display.update(
                f"{so_far.words:,} words, {speed:,.0f}/s, perplexity {so_far.mean:,.1f} so far",
                text.position,
                text.size,
            )

        result = perplexity(elmo, text, max_words=words, on_progress=show_progress)
    if not as_json:
        vocabulary = elmo.bilm.vocabulary or ()
        _print_result(result, len(vocabulary), time.perf_counter() - start)
    click.echo(json.dumps(result.to_dict()))


def _print_result(result: Perplexity, vocabulary: int, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column()
    for name in ("forward", "backward", "mean"):
        table.add_column(name, justify="right")
    numbers = (f"{value:,.2f}" for value in (result.forward, result.backward, result.mean))
    table.add_row("perplexity", *numbers, style="bold")
    console.print(table)
    for name, value in (
        ("words", f"{result.words:,}"),
        ("sentences", f"{result.sentences:,}"),
        ("tokens", f"{result.tokens:,} predicted per direction: words and ends of sentences"),
        ("oov", f"{result.oov:.2%} of the words are not in the vocabulary of {vocabulary:,}"),
        ("time", f"{seconds:.1f} s, {result.words / max(seconds, 1e-9):,.0f} words/s"),
    ):
        console.print(f"{name:<12} {value}", soft_wrap=True)
