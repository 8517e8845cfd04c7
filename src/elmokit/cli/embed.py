"""`elmo embed`: sentences to vectors, for a person, a program, or a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from elmokit.cli.bars import time_columns, words_bar

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, Layers

SHOWN = 20
"""Sentences that are shown to a person; more want a file."""


def _layers(context: click.Context, parameter: click.Parameter, value: str) -> Layers:
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
    "-m", "--model", default="builtin", show_default=True, help="A model: its path or its name."
)
@click.option("-f", "--file", type=click.Path(), help="Read sentences from a file; - is stdin.")
@click.option("--tokenized", is_flag=True, help="Words are separated by spaces already.")
@click.option("--split", is_flag=True, help="Running text: find the sentences in it.")
@click.option(
    "--layers",
    default="mix",
    show_default=True,
    callback=_layers,
    help="mix, all, top, or a number: 0 is the word vectors.",
)
@click.option("-o", "--out", type=click.Path(), help="Write to FILE.h5, .npz or .parquet.")
@click.option("--float16", is_flag=True, help="Store half precision in the file.")
@click.option("--restart", is_flag=True, help="Do not continue an interrupted run.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a sentence.")
@click.option(
    "--state",
    type=click.Choice(["settled", "zero", "carry"]),
    default="settled",
    show_default=True,
    help="Where a sentence starts from; carry continues from the sentence before.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "int8"]),
    default="float32",
    show_default=True,
    help="Arithmetic: exact, or fast.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Cores to use; all by default.")
def command(
    texts: tuple[str, ...],
    model: str,
    file: str | None,
    tokenized: bool,
    split: bool,
    layers: Layers,
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

    Each TEXT is a sentence; with --file, or from stdin, each line is one. Without --out or --json
    it prints something to look at: how the words of a sentence relate to each other, and how far
    apart the vectors of a word are that occurs more than once.

    An interrupted --out continues where it stopped when the same command is given again.

    \b
    elmo embed -m DIR "I sat by the river bank." "The bank lent me money."
    elmo embed -m DIR --file text.txt --out vectors.h5 --layers all
    elmo embed -m DIR --file book.txt --split --out vectors.parquet --float16
    cat tokenized.txt | elmo embed -m DIR --tokenized --json
    """
    if texts and file:
        raise click.UsageError("give TEXT or --file, not both")
    if tokenized and split:
        raise click.UsageError("--split finds sentences in running text, not in --tokenized words")
    if out and as_json:
        raise click.UsageError("give --out or --json, not both")
    if not out and (float16 or restart or force):
        raise click.UsageError("--float16, --restart and --force go with --out")
    if not texts and file is None:
        if sys.stdin.isatty():
            raise click.UsageError("give a TEXT, or --file, or pipe sentences in")
        file = "-"

    from elmokit.elmo import Elmo

    with _opened(file) as raw:
        elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads)
        lines = iter(texts) if raw is None else _lines(raw, file or "-")
        sentences = _sentences(lines, tokenized, split)
        if out:
            size = _size(raw)
            _to_file(elmo, sentences, out, layers, float16, restart, force, raw, size)
        elif as_json:
            _print_json(elmo, sentences, layers)
        else:
            _show(elmo, sentences, layers)


# -- where sentences come from -------------------------------------------------------------------


def _opened(file: str | None) -> AbstractContextManager[BinaryIO | None]:
    if file is None:
        return nullcontext(None)
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    return Path(file).open("rb")


def _lines(raw: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a UTF-8 file; only a newline ends one."""
    from elmokit.errors import InputError

    for number, line in enumerate(raw, start=1):
        try:
            yield line.decode("utf-8").removeprefix("\ufeff" if number == 1 else "").rstrip("\r\n")
        except UnicodeDecodeError as error:
            where = "stdin" if name == "-" else name
            raise InputError(
                f"{where}, line {number} is not UTF-8 (byte 0x{line[error.start]:02x} at "
                f"{error.start}); convert it first, e.g. iconv -f latin1 -t utf-8"
            ) from None


def _sentences(lines: Iterator[str], tokenized: bool, split: bool) -> Iterator[str | list[str]]:
    if tokenized:
        return (line.split() for line in lines)
    if not split:
        return lines
    from elmokit.text.files import paragraphs_of
    from elmokit.text.sentences import split_sentences

    return (
        sentence.text
        for paragraph in paragraphs_of(lines)
        for sentence in split_sentences(paragraph)
    )


def _size(raw: BinaryIO | None) -> int | None:
    """The bytes to read, where that can be known."""
    if raw is None or not raw.seekable():
        return None
    here = raw.tell()
    end = raw.seek(0, 2)
    raw.seek(here)
    return end


# -- where vectors go ------------------------------------------------------------------------------


def _to_file(
    elmo: Elmo,
    sentences: Iterator[str | list[str]],
    out: str,
    layers: Layers,
    float16: bool,
    restart: bool,
    force: bool,
    raw: BinaryIO | None,
    size: int | None,
) -> None:
    from elmokit.vectors.embed import embed_to_file

    started = time.perf_counter()
    position = raw.tell if raw is not None and size else None
    try:
        with _progress(size, position) as on_sentence:
            written = embed_to_file(
                elmo,
                sentences,
                out,
                layers=layers,
                dtype="float16" if float16 else "float32",
                restart=restart,
                overwrite=force,
                on_sentence=on_sentence,
            )
    except KeyboardInterrupt:
        click.echo("interrupted; the same command continues where it stopped", err=True)
        sys.exit(130)
    seconds = time.perf_counter() - started
    shape = f"(T, {elmo.dim})" if layers != "all" else f"({elmo.layers}, T, {elmo.dim})"
    resumed = f", {written.resumed:,} of them by an earlier run" if written.resumed else ""
    click.echo(
        f"{out}: {written.sentences:,} sentences{resumed}, {written.words:,} words, "
        f"{shape} {'float16' if float16 else 'float32'}, {seconds:.1f} s"
    )


class _progress:
    """A bar on stderr while a file is written; nothing where nobody looks."""

    def __init__(self, size: int | None, position: Callable[[], int] | None) -> None:
        self._bar = words_bar(*time_columns())
        self._task = self._bar.add_task("", total=size, words=0, speed=0.0)
        self._position = position
        self._words = 0
        self._started = time.perf_counter()

    def __enter__(self) -> Callable[[Sequence[str]], None]:
        self._bar.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _tell(self, words: Sequence[str]) -> None:
        self._words += len(words)
        self._bar.update(
            self._task,
            completed=self._position() if self._position else None,
            words=self._words,
            speed=self._words / (time.perf_counter() - self._started),
        )


def _print_json(elmo: Elmo, sentences: Iterator[str | list[str]], layers: Layers) -> None:
    import json

    def number(value: float) -> float:
        return float(f"{value:.9g}")  # nine digits are a float32 exactly

    def rounded(values: Any) -> Any:
        return [rounded(v) for v in values] if isinstance(values, list) else number(values)

    for index, (words, vectors) in enumerate(elmo.items(sentences, layers)):
        line = {"index": index, "words": list(words), "shape": list(vectors.shape)}
        click.echo(json.dumps(line | {"vectors": rounded(vectors.tolist())}))


def _show(elmo: Elmo, sentences: Iterator[str | list[str]], layers: Layers) -> None:
    from itertools import islice

    from elmokit.cli.similarities import show_relations

    first = list(islice(elmo.words(sentences), SHOWN))
    if not first:
        click.echo("no sentences", err=True)
        return
    show_relations(elmo, first, layers)
    if next(sentences, None) is not None:
        click.echo(
            f"\nthe first {SHOWN} sentences; for all of them give --out FILE or --json", err=True
        )
