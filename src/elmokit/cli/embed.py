"""`elmo embed`: turn sentences into vectors, to look at, as JSON, in a file, or in a picture."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice, tee
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from elmokit.cli.embed_shards import embed_in_shards, is_sharded, shard_options
from elmokit.cli.engine_options import device_option, dtype_option, state_option, threads_option
from elmokit.cli.json_lines import print_vectors
from elmokit.cli.paths import PATH
from elmokit.cli.proteins import (
    FastaInput,
    check_proteins,
    load_proteins,
    print_proteins,
    refuse_text_options,
)

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, LayerChoice, Pooling
    from elmokit.text.files import TextFile
    from elmokit.vectors.embed import RowUnit

MOST_SHOWN = 20
"""Number of sentences that are printed to look at."""


def _parse_layers(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> LayerChoice | None:
    if value is None or value in ("mix", "sum", "all", "top"):
        return value  # type: ignore[return-value]
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not 'mix', 'sum', 'all', 'top' or the number of a layer"
        ) from None


@click.command("embed", short_help="Turn sentences into contextual word vectors.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "-m", "--model", default="builtin", show_default=True, help="Model: a path or a name."
)
@click.option(
    "-f",
    "--file",
    type=PATH,
    help="Text file with one sentence per line, compressed or not, or Parquet file with one per "
    "row; - is stdin.",
)
@click.option(
    "--column",
    metavar="NAME",
    help="Column of the sentences in a Parquet file.  [default: text, or the only one of strings]",
)
@click.option(
    "--fasta",
    type=PATH,
    metavar="FILE",
    help="FASTA file of proteins, compressed or not; - is stdin. A residue is a word.",
)
@click.option(
    "--id-field",
    type=click.IntRange(min=0),
    metavar="N",
    help="Field of a FASTA header that is the id, divided at | and counted from 0.  [default: its "
    "first word]",
)
@click.option("--tokenized", is_flag=True, help="Split words at spaces only.")
@click.option("--split", is_flag=True, help="Split running text into sentences.")
@click.option(
    "--layers",
    callback=_parse_layers,
    help="Layers to return: mix, sum, all, top, or a layer number (0 is the context-free layer).  "
    "[default: mix; sum with --fasta]",
)
@click.option("-o", "--out", type=PATH, help="Write to FILE.h5, .npz or .parquet.")
@click.option(
    "--rows",
    type=click.Choice(["sentences", "words"]),
    default="sentences",
    show_default=True,
    help="Rows of a Parquet file: sentences with all their vectors, or words with one each.",
)
@click.option(
    "--pool",
    type=click.Choice(["mean", "max"]),
    help="Pool the vectors of a sentence into one, for a file or --json.",
)
@click.option("--normalize", is_flag=True, help="Scale every vector to length 1.")
@click.option("--float16", is_flag=True, help="Store float16 instead of float32 in the file.")
@click.option("--restart", is_flag=True, help="Discard an interrupted run instead of continuing.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per sentence.")
@click.option("--word", help="Compare the uses of this word only; lines may be SENSE<TAB>SENTENCE.")
@click.option(
    "--picture",
    type=PATH,
    metavar="FILE.svg|FILE.html",
    help="Draw the uses of --word as dots with their sentences, one panel per layer.",
)
@click.option("--open", "open_picture", is_flag=True, help="Open the picture in the browser.")
@state_option
@dtype_option
@threads_option
@device_option
@shard_options
def command(
    texts: tuple[str, ...],
    model: str,
    file: str | None,
    column: str | None,
    fasta: str | None,
    id_field: int | None,
    tokenized: bool,
    split: bool,
    layers: LayerChoice | None,
    out: str | None,
    rows: RowUnit,
    pool: Pooling | None,
    normalize: bool,
    float16: bool,
    restart: bool,
    force: bool,
    as_json: bool,
    word: str | None,
    picture: str | None,
    open_picture: bool,
    state: str,
    dtype: str,
    threads: int | None,
    device: str,
    **sharding: Any,
) -> None:
    """Turn sentences into contextual word vectors.

    Each TEXT is a sentence; with --file, or from stdin, each line is one. Without --out or --json,
    it prints how similar the words of each sentence are to each other, and how similar the vectors
    of a word are that occurs more than once. With --word it prints each use of that word and the
    use nearest to it, and with --picture it draws them; SENSE and a tab before a sentence give the
    dots their colors.

    If a command with --out is interrupted, give it again: it continues where it stopped.

    With --shards, --out is a directory, and the text is divided into shards that worker processes,
    or the tasks of a SLURM array, embed independently of each other; --reduce says what is kept.

    \b
    elmo embed "I sat by the river bank." "The bank lent me money."
    elmo embed --file text.txt.gz --out vectors.h5 --layers all
    elmo embed --file book.txt --split --out words.parquet --rows words
    elmo embed --file reviews.parquet --column review --out reviews-mean.parquet --pool mean
    elmo embed -m seqvec --fasta proteins.fasta.gz --out proteins.h5 --pool mean
    elmo embed --word bank --file sentences.txt --picture bank.html --open
    elmo embed --file corpus.txt --out job --shards 50 --workers 2 --reduce sentence
    elmo embed --file corpus.txt --out job --shard $SLURM_ARRAY_TASK_ID/50 --reduce sentence
    cat tokenized.txt | elmo embed -m DIR --tokenized --json

    In Python: `elmokit.Elmo.embed`, with --out `elmokit.embed_to_file`, with --fasta
    `elmokit.Elmo.embed_fasta` and `elmokit.embed_fasta_to_file`, and with --picture
    `elmokit.probe.draw_uses`. With --shards: `elmokit.vectors.plan_shards`, `run_shards`,
    `verify_shards` and `merge_shards`.
    """
    if is_sharded(sharding):
        refused = {"TEXT": texts, "--fasta": fasta, "--json": as_json, "--word": word}
        refused |= {"--restart": restart, "--force": force, "--rows words": rows == "words"}
        for name, value in refused.items():
            if value:
                raise click.UsageError(f"{name} cannot be combined with shards")
        if tokenized and split:
            raise click.UsageError("--split works on running text, not on --tokenized words")
        embed_in_shards(
            *(model, file, column, out, layers, tokenized, split, pool, normalize, float16),
            *(state, dtype, threads, device, sharding),
        )
        return
    if fasta is not None:
        refuse_text_options(
            {
                "TEXT": texts,
                "--file": file,
                "--column": column,
                "--tokenized": tokenized,
                "--split": split,
                "--word": word,
                "--picture": picture,
                "--open": open_picture,
            }
        )
        if not out and not as_json:
            raise click.UsageError("--fasta requires --out FILE.h5, .npz or .parquet, or --json")
    elif id_field is not None:
        raise click.UsageError("--id-field is about headers of FASTA files: give --fasta FILE")
    if layers is None:
        layers = "mix" if fasta is None else "sum"
    if texts and file:
        raise click.UsageError("give TEXT or --file, not both")
    if tokenized and split:
        raise click.UsageError("--split works on running text, not on --tokenized words")
    if out and as_json:
        raise click.UsageError("give --out or --json, not both")
    if not out and (float16 or restart or force) and not (force and picture):
        raise click.UsageError("--float16, --restart and --force require --out")
    if rows == "words" and not out:
        raise click.UsageError("--rows words requires --out FILE.parquet")
    if rows == "words" and pool:
        raise click.UsageError("--pool makes one row per sentence; leave out --rows words")
    if (pool or normalize) and not (out or as_json):
        raise click.UsageError("--pool and --normalize require --out or --json")
    if word and (out or as_json):
        raise click.UsageError("--word compares uses; it cannot be combined with --out or --json")
    if picture and not word:
        raise click.UsageError("--picture draws the uses of one word: give it with --word WORD")
    if open_picture and not picture:
        raise click.UsageError("--open requires --picture FILE.svg or FILE.html")
    if column and not file:
        raise click.UsageError("--column names a column of a table: give --file FILE.parquet")
    if not texts and file is None and fasta is None:
        if sys.stdin.isatty():
            raise click.UsageError("give a TEXT or --file, or pipe sentences in")
        file = "-"

    from elmokit.elmo import Elmo
    from elmokit.text.files import TextFile

    if fasta is not None:
        proteins = FastaInput(TextFile(fasta), id_field)
        check_proteins(proteins)
        elmo = load_proteins(model, state, dtype, threads)
        if out:
            options = _FileOptions(layers, rows, pool, normalize, float16, restart, force)
            _write_file(elmo, proteins, out, options, proteins.file)
        else:
            print_proteins(elmo, proteins, layers, pool, normalize)
        return
    _warn_of_file_names(texts)
    source = None if file is None else TextFile(file, column)
    lines = iter(texts) if source is None else _read_texts(source)
    is_table = source is not None and source.is_table
    if column and not is_table:
        raise click.UsageError(f"--column names a column of a Parquet file; {file} is text")
    if word:
        from elmokit.cli.word_uses import check_picture, show_uses

        check_picture(picture, force)
        elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads, device=device)
        show_uses(elmo, word, lines, tokenized, split, layers, picture, open_picture)
        return
    numbers = None
    if split and is_table and out and out.endswith(".parquet") and (pool or rows == "words"):
        numbers, sentences = _split_rows(lines)
    else:
        sentences = make_sentences(lines, tokenized, split)
    elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads, device=device)
    if out:
        options = _FileOptions(layers, rows, pool, normalize, float16, restart, force)
        _write_file(elmo, sentences, out, options, source, numbers)
    elif as_json:
        _print_json(elmo, sentences, layers, pool, normalize)
    else:
        _print_similarities(elmo, sentences, layers)


class _FileOptions(NamedTuple):
    """What the options say about the file to write."""

    layers: LayerChoice
    rows: RowUnit
    pool: Pooling | None
    normalize: bool
    float16: bool
    restart: bool
    force: bool


def _warn_of_file_names(texts: Sequence[str]) -> None:
    """Warn if a TEXT is the name of a file, whose name would be embedded instead of its text."""
    for text in texts:
        if len(text) < 256 and "." in text and os.path.isfile(text):
            click.echo(
                f"elmo: warning: {text!r} is embedded as a sentence; to embed the text in this "
                f"file: --file {shlex.quote(text)}",
                err=True,
            )


def _read_texts(source: TextFile) -> Iterator[str]:
    """Return the texts of a file, and read the first now, so that a missing file fails early."""
    texts = source.texts()
    return chain(list(islice(texts, 1)), texts)


def make_sentences(texts: Iterator[str], tokenized: bool, split: bool) -> Iterator[str | list[str]]:
    """Return the sentences of texts: lines of a file, or rows of a table."""
    if tokenized:
        return (text.split() for text in texts)
    if not split:
        return texts
    from elmokit.text.files import join_paragraphs
    from elmokit.text.sentences import split_sentences

    # A text of several lines is a row of a table, and ends with the row.
    lines = (line for text in texts for line in (*text.split("\n"), *([""] * ("\n" in text))))
    return (
        sentence.text
        for paragraph in join_paragraphs(lines)
        for sentence in split_sentences(paragraph)
    )


def _split_rows(
    texts: Iterator[str],
) -> tuple[Iterator[int], Iterator[str | list[str]]]:
    """Return the numbers of the rows that the sentences of a table are from, and the sentences."""
    pairs, copy = tee(
        (row, sentence)
        for row, text in enumerate(texts)
        for sentence in make_sentences(iter([text]), tokenized=False, split=True)
    )
    return (row for row, _ in pairs), (sentence for _, sentence in copy)


def _write_file(
    elmo: Elmo,
    sentences: Iterator[str | list[str]] | FastaInput,
    out: str,
    options: _FileOptions,
    source: TextFile | None,
    row_numbers: Iterator[int] | None = None,
) -> None:
    from elmokit.progress import ProgressDisplay
    from elmokit.vectors.embed import embed_fasta_to_file, embed_to_file

    is_fasta = isinstance(sentences, FastaInput)
    sentence_name, word_name = ("protein", "residue") if is_fasta else ("sentence", "word")
    started = time.perf_counter()
    existed = os.path.exists(out)
    size = None if source is None else source.size
    word_count = 0
    dtype = "float16" if options.float16 else "float32"

    def show_progress(words: Sequence[str]) -> None:
        nonlocal word_count
        word_count += len(words)
        speed = word_count / (time.perf_counter() - started)
        done = source.position if source is not None and size else 0
        display.update(f"{word_count:,} {word_name}s, {speed:,.0f} per second", done, size)

    try:
        with ProgressDisplay() as display:
            if isinstance(sentences, FastaInput):
                embed = partial(
                    embed_fasta_to_file, elmo, sentences.file, id_field=sentences.id_field
                )
            else:
                embed = partial(embed_to_file, elmo, sentences, row_numbers=row_numbers)
            summary = embed(
                out,
                layers=options.layers,
                dtype=dtype,
                rows=options.rows,
                pooling=options.pool,
                normalize=options.normalize,
                restart=options.restart,
                overwrite=options.force,
                on_sentence=show_progress,
            )
    except KeyboardInterrupt:
        click.echo("interrupted; the same command continues where it stopped", err=True)
        sys.exit(130)
    seconds = time.perf_counter() - started
    shape = f"(T, {elmo.dim})" if options.layers != "all" else f"({elmo.layers}, T, {elmo.dim})"
    if options.pool or options.rows == "words":
        per = sentence_name if options.pool else word_name
        vectors = f"{elmo.layers} vectors" if options.layers == "all" else "a vector"
        shape = f"one row per {per} with {vectors} of {elmo.dim}"
    if existed and not options.force and summary.resumed == summary.sentences:
        click.echo(
            f"{out}: finished by an earlier run of the same job, {summary.sentences:,} "
            f"{sentence_name}s, {summary.words:,} {word_name}s; nothing to do"
        )
        return
    resumed = f", {summary.resumed:,} of them by an earlier run" if summary.resumed else ""
    click.echo(
        f"{out}: {summary.sentences:,} {sentence_name}{'s' * (summary.sentences != 1)}{resumed}, "
        f"{summary.words:,} {word_name}{'s' * (summary.words != 1)}, "
        f"{shape} {dtype}, {seconds:.1f} s"
    )


def _print_json(
    elmo: Elmo,
    sentences: Iterator[str | list[str]],
    layers: LayerChoice,
    pool: Pooling | None,
    normalize: bool,
) -> None:
    from elmokit.elmo import pool_vectors

    for index, (words, unpooled) in enumerate(elmo.items(sentences, layers)):
        vectors = pool_vectors(unpooled, pool, normalize)
        print_vectors({"index": index, "words": list(words)}, vectors)


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
