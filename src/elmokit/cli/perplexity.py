"""`elmo perplexity`: how well a model predicts a text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from elmokit.cli.bars import words_bar
from elmokit.cli.text_options import form_of, text_options

if TYPE_CHECKING:
    from elmokit.lm import Perplexity
    from elmokit.train.reading import Text


@click.command("perplexity", short_help="Measure how well a model predicts a text.")
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@text_options
@click.option("--words", type=click.IntRange(min=1), help="Stop after so many words.")
@click.option(
    "--state",
    type=click.Choice(["settled", "zero", "carry"]),
    default="settled",
    show_default=True,
    help="Where a sentence starts from; carry reads the text as one stream, as bilm-tf does.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "int8"]),
    default="float32",
    show_default=True,
    help="Arithmetic of the network: exact, or fast.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Cores to use; all by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the line of JSON only.")
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
    as_json: bool,
) -> None:
    """Measure how well MODEL predicts the text of FILE, forward and backward.

    Perplexity is how many words the model hesitates between, on the average: exp of the mean loss
    over all words and the end of each sentence, by the full softmax. Words out of the vocabulary
    count as <UNK>, so only models of one vocabulary compare.

    FILE is read as `elmo corpus` reads text: UTF-8, plain or compressed, Parquet, a directory, or -
    for stdin; a line is a paragraph of running text, unless --lines or --tokenized says otherwise.
    A directory that `elmo corpus` made stands for its held-out text. Several are one text.

    The last line is JSON, with a signature of all that determined the numbers. Its "data" is the
    SHA-256 of the sentences as they were read, a space between words, one sentence a line.

    \b
    elmo perplexity DIR test.txt
    elmo perplexity builtin news.txt.xz --words 100000
    elmo perplexity model.ckpt heldout.tokens --tokenized --state carry
    """
    form = form_of(lines, tokenized)

    from elmokit.elmo import Elmo
    from elmokit.lm import perplexity
    from elmokit.train.reading import Text

    text = Text(files, form, column)
    elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads)
    started = time.perf_counter()
    with _progress(text) as on_progress:
        found = perplexity(elmo, text, words=words, on_progress=on_progress)
    if not as_json:
        vocabulary = elmo.bilm.vocabulary or ()
        _show(found, len(vocabulary), time.perf_counter() - started)
    click.echo(json.dumps(found.to_dict()))


def _show(found: Perplexity, vocabulary: int, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column()
    for name in ("forward", "backward", "mean"):
        table.add_column(name, justify="right")
    numbers = (f"{value:,.2f}" for value in (found.forward, found.backward, found.mean))
    table.add_row("perplexity", *numbers, style="bold")
    console.print(table)
    for name, value in (
        ("words", f"{found.words:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("tokens", f"{found.tokens:,} predicted in each direction: words and ends of sentences"),
        ("oov", f"{found.oov:.2%} of the words are not among the {vocabulary:,} it can say"),
        ("time", f"{seconds:.1f} s, {found.words / max(seconds, 1e-9):,.0f} words/s"),
    ):
        console.print(f"{name:<12} {value}", soft_wrap=True)


class _progress:
    """A bar on stderr while the text is read; nothing where nobody looks."""

    def __init__(self, text: Text) -> None:
        from rich.progress import TextColumn, TimeElapsedColumn

        so_far = TextColumn("perplexity {task.fields[mean]:,.1f} so far")
        self._bar = words_bar(so_far, TimeElapsedColumn())
        self._text = text
        self._task = self._bar.add_task("", total=text.size, words=0, speed=0.0, mean=0.0)
        self._started = time.perf_counter()

    def __enter__(self) -> Callable[[Perplexity], None]:
        self._bar.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _tell(self, so_far: Perplexity) -> None:
        self._bar.update(
            self._task,
            completed=self._text.position,
            words=so_far.words,
            speed=so_far.words / (time.perf_counter() - self._started),
            mean=so_far.mean,
        )
