"""`elmo corpus`: build a training corpus from text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.paths import PATH
from elmokit.cli.training_display import TrainingDisplay, warnings_at_the_end
from elmokit.cli.training_options import form_options, parse_form, valid_option

if TYPE_CHECKING:
    from elmokit.train.corpus import Corpus


@click.command("corpus", short_help="Build a training corpus from text.")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-o", "--out", required=True, type=PATH, help="Directory to create.")
@form_options
@valid_option
@click.option(
    "--held-out",
    type=click.FloatRange(0, 50),
    metavar="PERCENT",
    help="Percent of the lines of TEXT to hold out, at most 200,000 words.  [default: 0.5]",
)
@click.option("--vocabulary", type=PATH, help="A vocab.txt to use unchanged.")
@click.option(
    "--size",
    type=click.IntRange(min=4),
    metavar="WORDS",
    help="Number of words in the vocabulary, the most frequent ones.  [default: 30000]",
)
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Fewest occurrences of a word in the vocabulary.  [default: no limit]",
)
@click.option(
    "--words",
    type=click.IntRange(min=4),
    default=4_000_000,
    show_default=True,
    help="Largest number of distinct words; rarer ones become <UNK>.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Number of worker processes.  [default: one per processor]",
)
@click.option("--force", is_flag=True, help="Replace the corpus in --out if there is one.")
def command(
    texts: tuple[str, ...],
    out: str,
    wrapped: bool,
    lines: bool,
    tokenized: bool,
    column: str | None,
    valid: tuple[str, ...],
    held_out: float | None,
    vocabulary: str | None,
    size: int | None,
    min_count: int | None,
    words: int,
    processes: int | None,
    force: bool,
) -> None:
    """Build a training corpus: find sentences and words, choose a vocabulary, hold out lines.

    TEXT is a file, a directory of files, a pattern such as 'news-*', or - for stdin: UTF-8, plain
    or compressed (gzip, bzip2, xz, Zstandard), or Parquet. Each line is a paragraph of running
    text, unless --wrapped, --lines or --tokenized says otherwise. The text may be larger than the
    memory of the machine.

    A model reads every word by its characters, and predicts the words of the vocabulary. Some lines
    are held out to evaluate it, always the same ones, unless --valid names text for that.

    \b
    elmo corpus books/ --out corpus
    elmo corpus wiki.txt.xz news.parquet --valid dev.txt --out corpus --size 50000
    elmo corpus 'news.en-*-of-00100' --tokenized --vocabulary vocab.txt --out corpus

    In Python: `elmokit.train.build_corpus`.
    """
    form = parse_form(wrapped, lines, tokenized)
    if valid and held_out is not None:
        raise click.UsageError("give --valid or --held-out, not both")
    if vocabulary is not None and (size or min_count):
        raise click.UsageError(
            "--vocabulary is used unchanged, so --size and --min-count have no effect; leave them "
            "out"
        )

    from elmokit.train import CorpusOptions, build_corpus

    options = CorpusOptions(
        form=form,
        size=size,
        min_count=min_count,
        words=words,
        held_out=CorpusOptions.held_out if held_out is None else held_out,
        column=column,
    )
    started = time.perf_counter()
    with warnings_at_the_end():
        with TrainingDisplay("opening the text") as display:
            corpus = build_corpus(
                texts,
                out,
                options,
                valid=valid,
                vocabulary=vocabulary,
                processes=processes,
                force=force,
                on_chunk=display.on_chunk,
            )
        click.echo(render_corpus(corpus, time.perf_counter() - started))


def render_corpus(corpus: Corpus, seconds: float) -> str:
    """Return a summary of a corpus that took some time to build."""
    metadata = corpus.metadata
    train, valid = metadata["train"], metadata["valid"]
    rows = [
        ("sentences", f"{train['sentences']:,}"),
        ("words", f"{train['tokens']:,}, {train['distinct']:,} distinct"),
        (
            "vocabulary",
            f"{metadata['vocabulary']:,} words, {1 - train['oov_rate']:.2%} of the text "
            f"({train['oov_rate']:.2%} <UNK>)",
        ),
        ("held out", _render_held_out(valid)),
    ]
    unlisted = train["unlisted"] + (valid["unlisted"] if valid else 0)
    if unlisted:
        rows.append(
            (
                "unlisted",
                f"{unlisted:,} words are read as <UNK>, since --words is {metadata['words']:,}",
            )
        )
    if metadata["cut_sentences"]:
        rows.append(("cut", f"{metadata['cut_sentences']:,} sentences of more than 400 words"))
    is_running = metadata["options"]["form"] == "running"
    if is_running and metadata["broken_lines"] > 0.2 * metadata["lines"]:
        rows.append(
            ("warning", "many lines end inside a sentence; if the text is wrapped, give --wrapped")
        )
    speed = (train["tokens"] + (valid["tokens"] if valid else 0)) / max(seconds, 1e-9)
    rows.append(("time", f"{seconds:.1f} s, {speed:,.0f} words/s"))
    return "\n".join([str(corpus.path), *(f"  {name:<12}{value}" for name, value in rows)])


def _render_held_out(valid: dict[str, Any] | None) -> str:
    if valid is None:
        return "nothing"
    return (
        f"{valid['tokens']:,} words in {valid['sentences']:,} sentences, "
        f"{valid['oov_rate']:.2%} <UNK>"
    )
