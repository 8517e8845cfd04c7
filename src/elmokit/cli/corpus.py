"""`elmo corpus`: text to what a model is trained on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.bars import time_columns, words_bar

if TYPE_CHECKING:
    from elmokit.train.build import Report
    from elmokit.train.corpus import Corpus


@click.command("corpus", short_help="Make text ready for training.")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-o", "--out", required=True, type=click.Path(), help="The directory to make.")
@click.option("--wrapped", is_flag=True, help="A blank line ends a paragraph, a line does not.")
@click.option("--lines", is_flag=True, help="A line is a sentence.")
@click.option("--tokenized", is_flag=True, help="A line is a sentence, its words between spaces.")
@click.option("--valid", multiple=True, metavar="TEXT", help="Held-out text. May be repeated.")
@click.option(
    "--held-out",
    type=click.FloatRange(0, 50),
    metavar="PERCENT",
    help="Hold out so many lines of TEXT, at most 200,000 words; 0 for none.  [default: 0.5]",
)
@click.option("--vocabulary", type=click.Path(), help="A vocab.txt to take as it is.")
@click.option(
    "--size",
    type=click.IntRange(min=4),
    help="Words of the vocabulary, the most frequent ones.  [default: 30000]",
)
@click.option("--min-count", type=click.IntRange(min=1), help="Only words as frequent as that.")
@click.option(
    "--words",
    type=click.IntRange(min=4),
    default=4_000_000,
    show_default=True,
    help="Distinct words to tell apart; rarer ones become <UNK>.",
)
@click.option("--column", metavar="NAME", help="The text's column in Parquet files.")
@click.option("--processes", type=click.IntRange(min=1), help="How many; one a core by default.")
@click.option("--force", is_flag=True, help="Replace the corpus if it exists.")
def command(
    texts: tuple[str, ...],
    out: str,
    wrapped: bool,
    lines: bool,
    tokenized: bool,
    valid: tuple[str, ...],
    held_out: float | None,
    vocabulary: str | None,
    size: int | None,
    min_count: int | None,
    words: int,
    column: str | None,
    processes: int | None,
    force: bool,
) -> None:
    """Make text ready for training: find sentences and words, choose a vocabulary, count.

    TEXT is a file, a directory of files, a pattern such as 'news-*', or - for stdin: UTF-8, plain
    or compressed (gzip, bzip2, xz, Zstandard), or Parquet. A line is a paragraph of running text,
    unless --wrapped, --lines or --tokenized says otherwise. Any size: little of it is in memory at
    a time.

    A model reads every word by its characters and predicts those of the vocabulary. Some lines are
    held out to measure it, always the same ones, unless --valid names text for that.

    \b
    elmo corpus books/ --out corpus
    elmo corpus wiki.txt.xz news.parquet --valid dev.txt --out corpus --size 50000
    elmo corpus 'news.en-*-of-00100' --tokenized --vocabulary vocab.txt --out corpus
    """
    forms = {"wrapped": wrapped, "lines": lines, "tokenized": tokenized}
    chosen = [form for form, given in forms.items() if given]
    if len(chosen) > 1:
        raise click.UsageError(f"give {' or '.join(f'--{form}' for form in chosen)}, not both")
    if valid and held_out is not None:
        raise click.UsageError("give --valid or --held-out, not both")
    if vocabulary is not None and (size or min_count):
        raise click.UsageError("--vocabulary is taken as it is: no --size or --min-count with it")

    from elmokit.train.build import Options, build_corpus

    options = Options(
        form=chosen[0] if chosen else "running",  # type: ignore[arg-type]
        size=size,
        min_count=min_count,
        words=words,
        held_out=Options.held_out if held_out is None else held_out,
        column=column,
    )
    started = time.perf_counter()
    with _progress() as report:
        corpus = build_corpus(
            texts,
            out,
            options,
            valid=valid,
            vocabulary=vocabulary,
            processes=processes,
            force=force,
            report=report,
        )
    click.echo(summary(corpus, time.perf_counter() - started))


def summary(corpus: Corpus, seconds: float) -> str:
    """What there is, for a person."""
    about = corpus.about
    train, valid = about["train"], about["valid"]
    rows = [
        ("sentences", f"{train['sentences']:,}"),
        ("words", f"{train['tokens']:,}, {train['distinct']:,} distinct"),
        (
            "vocabulary",
            f"{about['vocabulary']:,} words, {1 - train['oov_rate']:.2%} of the text "
            f"({train['oov_rate']:.2%} <UNK>)",
        ),
        ("held out", _held_out(valid)),
    ]
    unlisted = train["unlisted"] + (valid["unlisted"] if valid else 0)
    if unlisted:
        rows.append(
            (
                "unlisted",
                f"{unlisted:,} words are read as <UNK>; --words {about['words']:,} is full",
            )
        )
    if about["cut_sentences"]:
        rows.append(("cut", f"{about['cut_sentences']:,} sentences of more than 400 words"))
    if about["options"]["form"] == "running" and about["broken_lines"] > 0.2 * about["lines"]:
        rows.append(("look", "many lines end inside a sentence: if the text is wrapped, --wrapped"))
    speed = (train["tokens"] + (valid["tokens"] if valid else 0)) / max(seconds, 1e-9)
    rows.append(("time", f"{seconds:.1f} s, {speed:,.0f} words/s"))
    return "\n".join([str(corpus.path), *(f"  {name:<12}{value}" for name, value in rows)])


def _held_out(valid: dict[str, Any] | None) -> str:
    if valid is None:
        return "nothing"
    return (
        f"{valid['tokens']:,} words in {valid['sentences']:,} sentences, "
        f"{valid['oov_rate']:.2%} <UNK>"
    )


class _progress:
    """A bar on stderr while the text is read; nothing where nobody looks."""

    def __init__(self) -> None:
        self._bar = words_bar(*time_columns())
        self._task = self._bar.add_task("", total=None, words=0, speed=0.0)
        self._started = time.perf_counter()

    def __enter__(self) -> Report:
        self._bar.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _tell(self, position: int, size: int | None, words: int) -> None:
        self._bar.update(
            self._task,
            completed=position,
            total=size,
            words=words,
            speed=words / (time.perf_counter() - self._started),
        )
