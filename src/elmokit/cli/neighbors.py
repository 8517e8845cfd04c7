"""`elmo neighbors`: the uses in a corpus that are most like a word in a sentence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import files_of, form_of, layer_option, text_options

if TYPE_CHECKING:
    from pathlib import Path

    from elmokit.elmo import Elmo, Layers, Sentence
    from elmokit.probe.neighbors.index import Index
    from elmokit.probe.neighbors.measure import StaticWords
    from elmokit.train.chunks import Form


@click.command("neighbors", short_help="Find the uses in a corpus most like a word in a sentence.")
@click.argument("word")
@click.option(
    "--in",
    "sentences",
    required=True,
    multiple=True,
    metavar="SENTENCE",
    help="A sentence with the word; several stand side by side.",
)
@click.option("--at", type=click.IntRange(min=1), help="Which one, if it is there several times.")
@click.option(
    "--corpus", "files", multiple=True, metavar="FILE", help="Text to look in; may be repeated."
)
@model_options
@layer_option
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many neighbors.",
)
@click.option("--same-word", is_flag=True, help="Only other uses of the word itself.")
@click.option(
    "--words", type=click.IntRange(min=1), help="Index so many words of the corpus.  [all]"
)
@click.option("--index", "place", metavar="DIR", help="Where the index is kept.  [the cache]")
@click.option("--exact", is_flag=True, help="Look at every use: slower, and nothing is missed.")
@click.option(
    "--vectors",
    metavar="glove|none|FILE",
    help="Static vectors to show beside it.  [glove, if it is installed]",
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
    layer: Layers,
    number: int,
    same_word: bool,
    words: int | None,
    place: str | None,
    exact: bool,
    vectors: str | None,
    lines: bool,
    tokenized: bool,
    column: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Find the uses of words in a corpus that are most like WORD as a SENTENCE uses it.

    Beside them stand the nearest words by vectors that know no context: GloVe's (pip install
    'elmokit[glove]'), or those of a FILE, and the model's own character layer.

    The corpus is indexed once, a million words in some minutes; asking again takes a second or two.
    An interrupted index is continued by the same command. FILE is UTF-8 text, plain or compressed,
    Parquet, a directory of them, or one that `elmo corpus` made.

    \b
    elmo neighbors play --in "They staged a play." --corpus news.txt.xz --words 1000000
    elmo neighbors play --in "He made a great play." --in "She wrote a play." --corpus news.txt
    elmo neighbors bank --in "The bank of the river." --same-word --corpus news.txt
    """
    form = form_of(lines, tokenized)
    if not files and not place:
        raise click.UsageError("give the text to look in: --corpus FILE, or an index: --index DIR")

    from elmokit.cli.results import finish, load, spinner
    from elmokit.probe.neighbors.measure import neighbors_measured
    from elmokit.probe.neighbors.nearest import one_use, places_of
    from elmokit.probe.results import signature

    elmo = load(model, threads)
    asked: list[Sentence] = [each.split() if tokenized else each for each in sentences]
    for sentence in asked:  # before an hour is spent on the corpus
        use = one_use(elmo, word, sentence, layer, at or 1)
        if at is None and len(places_of(use.words, word)) > 1:
            click.echo(f"note: the sentence has {word!r} several times; --at N chooses", err=True)
    data = files_of(files, "corpus")
    index = _index(elmo, data, files, place, layer=layer, words=words, form=form, column=column)
    with spinner("searching"):
        static = _static(vectors, word, number)
        seconds: list[float] = []
        found = neighbors_measured(
            elmo,
            index,
            word,
            asked,
            {
                **signature(elmo, {}),
                "data": index.manifest["source"].get("data", {"index": index.manifest["text"]}),
                "text": index.manifest["text"],
                "layer": index.manifest["layer"],
                "asked": [word, *sentences],
                "at": at or 1,
                "number": number,
                "same_word": same_word,
                "exact": exact,
                "vectors": None if static is None else static.name,
            },
            number=number,
            same_word=same_word,
            at=at or 1,
            exact=exact,
            static=static,
            searched=seconds.append,
        )
    finish(found, out, as_json, f"neighbors-{_plain(word)}")
    if index.why_exact.startswith("usearch"):
        click.echo(f"note: {index.why_exact}", err=True)
    times = ", ".join(f"{each * 1000:.1f} ms" for each in seconds)
    click.echo(f"searched: {len(index):,} uses in {times}", err=True)


def _index(
    elmo: Elmo,
    data: dict[str, str],
    files: tuple[str, ...],
    place: str | None,
    *,
    layer: Layers,
    words: int | None,
    form: Form,
    column: str | None,
) -> Index:
    """Open the index of these files, or make it."""
    import hashlib
    import json
    from pathlib import Path

    from elmokit.errors import InputError
    from elmokit.fetch.cache import models_root
    from elmokit.probe.neighbors.index import MANIFEST, Index
    from elmokit.probe.neighbors.indexing import layer_number, link
    from elmokit.probe.results import signature
    from elmokit.train.reading import Text

    determined = signature(elmo, data)
    source: dict[str, Any] = {
        **{name: determined[name] for name in ("model", "state", "dtype", "data")},
        "layer": layer_number(elmo, layer),
        "words": words,
        "form": form,
        "column": column,
    }
    key = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    directory = Path(place).expanduser() if place else models_root().parent / "indexes" / key[:24]
    if (directory / MANIFEST).is_file():
        index = Index.open(directory)
        compared = source if data else {name: source[name] for name in ("model", "layer")}
        for name, value in compared.items():
            if index.manifest["source"].get(name, index.manifest.get(name)) != value:
                raise InputError(
                    f"the index {directory} was made with another {name}; give another --index, "
                    "or delete it"
                )
        with _Bar(directory) as tell:
            return link(index, tell)
    if not data:
        raise InputError(f"there is no index in {directory}; give --corpus FILE to make it")
    text = Text(files, form, column)
    with _Bar(directory, text) as tell:
        return Index.build(
            elmo, text, directory, layer=layer, words_limit=words, source=source, progress=tell
        )


class _Bar:
    """What is done with the corpus, on a terminal; everywhere a line when it is done."""

    def __init__(self, directory: Path, text: Any = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._directory, self._text = directory, text
        self._task: Any = None
        self._what = ""
        self._started = time.perf_counter()

    def __enter__(self) -> Any:
        if self._text is not None:
            self._start("embedding")
        self._bar.start()
        return self._tell

    def __exit__(self, kind: object, *_: object) -> None:
        self._bar.stop()
        if self._what and kind is None:
            seconds = time.perf_counter() - self._started
            click.echo(f"index: {self._directory} (made in {seconds:.0f} s)", err=True)

    def _start(self, what: str) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, told="", total=None)
        self._what = what

    def _tell(self, what: str, done: int, of: int | None) -> None:
        if what != self._what:
            self._start(what)
        total: float | None = of
        completed: float = done
        if of is None and what == "embedding" and self._text is not None:
            total, completed = self._text.size, self._text.position
        told = f"{done:,} words" if done else ""
        self._bar.update(self._task, completed=completed, total=total, told=told)


def _static(vectors: str | None, word: str, number: int) -> StaticWords | None:
    from elmokit.probe.neighbors.measure import static_neighbors
    from elmokit.vectors.static import GLOVE, has_glove

    if vectors is None:
        vectors = GLOVE if has_glove() else "none"
    return None if vectors == "none" else static_neighbors(vectors, word, number)


def _plain(word: str) -> str:
    """As a part of a file's name."""
    return "".join(each if each.isalnum() else "-" for each in word)[:40]
