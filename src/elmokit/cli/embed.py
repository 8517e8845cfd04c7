"""`elmo embed`: turn sentences into vectors, to look at, as JSON, or in a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, LayerChoice
    from elmokit.text.files import TextFile

MOST_SHOWN = 20
"""Number of sentences that are printed to look at."""


def _parse_layers(context: click.Context, parameter: click.Parameter, value: str) -> LayerChoice:
    if value in ("mix", "all", "top"):
        return value  # type: ignore[return-value]
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not 'mix', 'all', 'top' or the number of a layer"
        ) from None


@click.command("embed", short_help="Turn sentences into contextual word vectors.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "-m", "--model", default="builtin", show_default=True, help="Model: a path or a name."
)
@click.option(
    "-f",
    "--file",
    type=click.Path(),
    help="Text file with one sentence per line, compressed or not; - is stdin.",
)
@click.option("--tokenized", is_flag=True, help="Split words at spaces only.")
@click.option("--split", is_flag=True, help="Split running text into sentences.")
@click.option(
    "--layers",
    default="mix",
    show_default=True,
    callback=_parse_layers,
    help="Layers to return: mix, all, top, or a layer number (0 is the context-free layer).",
)
@click.option("-o", "--out", type=click.Path(), help="Write to FILE.h5, .npz or .parquet.")
@click.option("--float16", is_flag=True, help="Store float16 instead of float32 in the file.")
@click.option("--restart", is_flag=True, help="Discard an interrupted run instead of continuing.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per sentence.")
@click.option(
    "--state",
    type=click.Choice(["settled", "zero", "carry"]),
    default="settled",
    show_default=True,
    help="LSTM state at the start of a sentence; carry continues from the sentence before.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "int8"]),
    default="float32",
    show_default=True,
    help="Arithmetic: float32 is exact, int8 is faster.",
)
@click.option(
    "--threads", type=click.IntRange(min=1), help="CPU threads to use.  [default: all cores]"
)
def command(
    texts: tuple[str, ...],
    model: str,
    file: str | None,
    tokenized: bool,
    split: bool,
    layers: LayerChoice,
    out: str | None,
    float16: bool,
    restart: bool,
    force: bool,
    as_json: bool,
    state: str,
    dtype: str,
    threads: int | None,
) -> None:
    """Turn sentences into contextual word vectors.

    Each TEXT is a sentence; with --file, or from stdin, each line is one. Without --out or --json,
    it prints how similar the words of each sentence are to each other, and how similar the vectors
    of a word are that occurs more than once.

    If a command with --out is interrupted, give it again: it continues where it stopped.

    \b
    elmo embed -m DIR "I sat by the river bank." "The bank lent me money."
    elmo embed -m DIR --file text.txt.gz --out vectors.h5 --layers all
    elmo embed -m DIR --file book.txt --split --out vectors.parquet --float16
    cat tokenized.txt | elmo embed -m DIR --tokenized --json

    In Python: `elmokit.Elmo.embed` and, with --out, `elmokit.embed_to_file`.
    """
    if texts and file:
        raise click.UsageError("give TEXT or --file, not both")
    if tokenized and split:
        raise click.UsageError("--split works on running text, not on --tokenized words")
    if out and as_json:
        raise click.UsageError("give --out or --json, not both")
    if not out and (float16 or restart or force):
        raise click.UsageError("--float16, --restart and --force require --out")
    if not texts and file is None:
        if sys.stdin.isatty():
            raise click.UsageError("give a TEXT or --file, or pipe sentences in")
        file = "-"

    from elmokit.elmo import Elmo
    from elmokit.text.files import TextFile

    source = None if file is None else TextFile(file)
    lines = iter(texts) if source is None else _read_lines(source)
    sentences = _make_sentences(lines, tokenized, split)
    elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads)
    if out:
        _write_file(elmo, sentences, out, layers, float16, restart, force, source)
    elif as_json:
        _print_json(elmo, sentences, layers)
    else:
        _print_similarities(elmo, sentences, layers)


def _read_lines(source: TextFile) -> Iterator[str]:
    """Return the lines of a file, and read the first now, so that a missing file fails early."""
    lines = (line for _, line in source.lines())
    return chain(list(islice(lines, 1)), lines)


def _make_sentences(
    lines: Iterator[str], tokenized: bool, split: bool
) -> Iterator[str | list[str]]:
    if tokenized:
        return (line.split() for line in lines)
    if not split:
        return lines
    from elmokit.text.files import join_paragraphs
    from elmokit.text.sentences import split_sentences

    return (
        sentence.text
        for paragraph in join_paragraphs(lines)
        for sentence in split_sentences(paragraph)
    )


def _write_file(
    elmo: Elmo,
    sentences: Iterator[str | list[str]],
    out: str,
    layers: LayerChoice,
    float16: bool,
    restart: bool,
    force: bool,
    source: TextFile | None,
) -> None:
    from elmokit.progress import ProgressDisplay
    from elmokit.vectors.embed import embed_to_file

    started = time.perf_counter()
    size = None if source is None else source.size
    word_count = 0
    dtype = "float16" if float16 else "float32"

    def show_progress(words: Sequence[str]) -> None:
        nonlocal word_count
        word_count += len(words)
        speed = word_count / (time.perf_counter() - started)
        done = source.position if source is not None and size else 0
        display.update(f"{word_count:,} words, {speed:,.0f} per second", done, size)

    try:
        with ProgressDisplay() as display:
            summary = embed_to_file(
                elmo,
                sentences,
                out,
                layers=layers,
                dtype=dtype,
                restart=restart,
                overwrite=force,
                on_sentence=show_progress,
            )
    except KeyboardInterrupt:
        click.echo("interrupted; the same command continues where it stopped", err=True)
        sys.exit(130)
    seconds = time.perf_counter() - started
    shape = f"(T, {elmo.dim})" if layers != "all" else f"({elmo.layers}, T, {elmo.dim})"
    resumed = f", {summary.resumed:,} of them by an earlier run" if summary.resumed else ""
    click.echo(
        f"{out}: {summary.sentences:,} sentences{resumed}, {summary.words:,} words, "
        f"{shape} {dtype}, {seconds:.1f} s"
    )


def _print_json(elmo: Elmo, sentences: Iterator[str | list[str]], layers: LayerChoice) -> None:
    import json

    def rounded(values: Any) -> Any:
        if isinstance(values, list):
            return [rounded(value) for value in values]
        return float(f"{values:.9g}")  # nine digits identify a float32

    for index, (words, vectors) in enumerate(elmo.items(sentences, layers)):
        line = {"index": index, "words": list(words), "shape": list(vectors.shape)}
        click.echo(json.dumps(line | {"vectors": rounded(vectors.tolist())}))


def _print_similarities(
    elmo: Elmo, sentences: Iterator[str | list[str]], layers: LayerChoice
) -> None:
    from elmokit.cli.similarities import print_similarities

    first = list(islice(elmo.words(sentences), MOST_SHOWN))
    if not first:
        click.echo("no sentences", err=True)
        return
    print_similarities(elmo, first, layers)
    if next(sentences, None) is not None:
        click.echo(
            f"\nonly the first {MOST_SHOWN} sentences are shown; for all of them give --out FILE "
            "or --json",
            err=True,
        )
