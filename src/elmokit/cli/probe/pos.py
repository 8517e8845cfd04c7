"""`elmo probe pos`: which parts of speech each layer tells."""

from __future__ import annotations

from importlib import import_module

import click

from elmokit.cli.results import model_options, result_options


@click.command("pos", short_help="Parts of speech: a linear tagger on each layer.")
@click.option("--train", required=True, metavar="FILE", help="What the taggers learn from.")
@click.option(
    "--test",
    "tests",
    required=True,
    multiple=True,
    metavar="FILE",
    help="What they are scored on; give several to compare.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["tabs", "conllu", "spaces"]),
    help="Of the files.  [seen from their first lines]",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME|NUMBER",
    help="Which tags, by the column's name or its number from 1; several times for several.  "
    "[the parts of speech]",
)
@click.option("--words", type=click.IntRange(min=1), help="Learn from the first so many only.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@model_options
@result_options
def command(
    train: str,
    tests: tuple[str, ...],
    form: str | None,
    columns: tuple[str, ...],
    words: int | None,
    seed: int,
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Learn a linear tagger on each layer's frozen vectors, and score it.

    The better a layer's tagger, the more that layer knows about syntax. Beside the layers stand all
    of them together, the same network before it was trained, and the tag that each word has most
    often; apart from all words, those with several tags and those that are not in FILE of --train.

    A file has a word a line and blank lines between sentences: word and tags between tabs, CoNLL-U,
    or columns between spaces as those of CoNLL-2003 (word, pos, chunk, ner). Needs torch.

    \b
    elmo probe pos --train en_ewt-ud-train.conllu --test en_ewt-ud-dev.conllu
    elmo probe pos --train train.tsv --test dev.tsv --test test.tsv --out figures
    elmo probe pos --train train.conll --test dev.conll --column chunk -m original
    """
    from elmokit.cli.results import finish, load, spinner
    from elmokit.probe.results import signature
    from elmokit.probe.tags.data import Tagged, read_tagged
    from elmokit.probe.tags.measure import measure
    from elmokit.text.files import checksum

    import_module("elmokit.probe.tags.linear")  # says what to install, if it is missing
    import torch

    torch.set_num_threads(threads or 1)  # a small classifier: two threads on busy cores crawl
    learned = read_tagged(train, columns or None, form)
    names = _names(tests)
    tested = {name: read_tagged(path, columns or None, form) for name, path in names.items()}
    if not columns:
        # What is not in all files can be learned or tested, but not both.
        common = set(learned.tags).intersection(*(test.tags for test in tested.values()))
        if common:
            learned = Tagged(
                learned.sentences, {n: t for n, t in learned.tags.items() if n in common}
            )
    for path in tests:
        if checksum(path) == checksum(train):
            click.echo(f"warning: {path} is the training set: its scores mean little", err=True)
    if words is not None:
        learned = learned.first(words)
    elmo = load(model, threads)
    data = {"train": train, **names}
    known = signature(elmo, data, columns=list(learned.tags), words=words, seed=seed)
    with spinner("reading …") as tell:
        found = measure(elmo, learned, tested, known, seed=seed, tell=tell)
    finish(found, out, as_json)


def _names(paths: tuple[str, ...]) -> dict[str, str]:
    """A short name for each file: its own, or what tells files of the same name apart."""
    from pathlib import Path

    from elmokit.errors import InputError

    for parts in (1, 2, 3, 10**6):
        names = {
            "/".join([*Path(path).parts[-parts:-1], Path(path).name.partition(".")[0]]): path
            for path in paths
        }
        if len(names) == len(paths) and "train" not in names:
            return names
    raise InputError(f"the test sets are {', '.join(paths)}; expected different files")
