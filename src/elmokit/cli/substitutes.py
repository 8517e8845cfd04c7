"""`elmo substitutes`: what else could stand at each place of a sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from elmokit.lm import Place, Ranking


@click.command("substitutes", short_help="Show which words could stand at each place.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "-m", "--model", default="builtin", show_default=True, help="A model: its path or its name."
)
@click.option(
    "-k",
    "--count",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many words for each place.",
)
@click.option("--word", "number", type=click.IntRange(min=1), help="Only word N of the sentence.")
@click.option("--at", metavar="WORD", help="Only where this word stands.")
@click.option("--tokenized", is_flag=True, help="Words are separated by spaces already.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a sentence.")
@click.option(
    "--state",
    type=click.Choice(["settled", "zero"]),
    default="settled",
    show_default=True,
    help="Where a sentence starts from.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Cores to use; all by default.")
def command(
    texts: tuple[str, ...],
    model: str,
    count: int,
    number: int | None,
    at: str | None,
    tokenized: bool,
    as_json: bool,
    state: str,
    threads: int | None,
) -> None:
    """Show which words the model expects at each place of a sentence.

    Each TEXT is a sentence; from stdin, each line is one. The forward model knows the words before
    the place, the backward model those behind it; neither sees the word itself. Both together are
    the product of their probabilities, normalized. Beside the word that stands there: its rank
    and its probability. <UNK> is any word out of the vocabulary.

    \b
    elmo substitutes "She went to the bank ."
    elmo substitutes "She went to the bank ." --at bank -k 20
    elmo substitutes -m DIR --word 5 --json "She went to the bank ."
    """
    if number is not None and at is not None:
        raise click.UsageError("give --word or --at, not both")
    if not texts and sys.stdin.isatty():
        raise click.UsageError("give a TEXT, or pipe sentences in")

    from rich.console import Console

    from elmokit.elmo import Elmo
    from elmokit.lm import substitutes

    elmo = Elmo.load(model, state=state, threads=threads)
    console = Console(highlight=False)
    for index, line in enumerate(texts or _stdin()):
        words = line.split() if tokenized else elmo.tokenize(line)
        chosen = _chosen(words, number, at)
        (places,) = substitutes(elmo, [words], k=count)
        if as_json:
            asked = [{"index": i} | places[i].to_dict() for i in chosen]
            click.echo(json.dumps({"index": index, "words": words, "places": asked}))
            continue
        if index:
            console.print()
        if number is None and at is None:
            _show_all(console, places)
        else:
            for i in chosen:
                _show_one(console, words, i, places[i])


def _stdin() -> Iterator[str]:
    from elmokit.text.files import STDIN, TextFile, decode_lines

    return (
        line
        for block in TextFile(STDIN).blocks(1 << 16)
        for line in decode_lines(block)
        if line.strip()
    )


def _chosen(words: Sequence[str], number: int | None, at: str | None) -> list[int]:
    """The places that are asked for."""
    from elmokit.errors import InputError

    sentence = " ".join(words)
    if not words:
        raise InputError("there are no words in the text")
    if number is not None:
        if number > len(words):
            raise InputError(f"--word {number}: the sentence has {len(words)} words: {sentence}")
        return [number - 1]
    places = [i for i, word in enumerate(words) if at in (None, word)]
    if not places:
        raise InputError(f"--at {at}: it is none of the words of: {sentence}")
    return places


# -- for people ------------------------------------------------------------------------------------


def _show_all(console: Console, places: Sequence[Place]) -> None:
    """A row a place; the words alone."""
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="dim", border_style="dim", show_lines=True)
    table.add_column("", justify="right", style="dim")
    table.add_column("word", min_width=min(16, max(len(place.word) for place in places)))
    for name in ("forward", "backward", "both"):
        table.add_column(name, ratio=1)
    for number, place in enumerate(places, start=1):
        cells = []
        for ranking in (place.forward, place.backward, place.both):
            cell = Text.assemble((_own(ranking) + "\n", "dim"))
            for word, _ in ranking.best:
                cell.append_text(_marked(word, place)).append(" ")
            cells.append(cell)
        table.add_row(str(number), _title(place), *cells)
    console.print(table)


def _show_one(console: Console, words: Sequence[str], i: int, place: Place) -> None:
    """One place: the words with their probabilities."""
    from rich.table import Table
    from rich.text import Text

    around = Text(" ").join(
        Text(word, "bold cyan" if j == i else "") for j, word in enumerate(words)
    )
    console.print(around)
    rankings = (place.forward, place.backward, place.both)
    table = Table(header_style="dim", border_style="dim")
    for name, ranking in zip(("forward", "backward", "both"), rankings, strict=True):
        table.add_column(f"{name}\n{_own(ranking)}", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    for best in zip(*(ranking.best for ranking in rankings), strict=True):
        cells: list[Text] = []
        for word, probability in best:
            cells += [_marked(word, place), Text(_chance(probability), "dim")]
        table.add_row(*cells)
    console.print(table)


def _title(place: Place) -> Text:
    from rich.text import Text

    title = Text(place.word, "bold cyan")
    return title if place.known == place.word else title.append(f"\n{place.known}", "dim")


def _own(ranking: Ranking) -> str:
    """What the word that stands there got."""
    return f"rank {ranking.rank:,}, {_chance(ranking.probability)}"


def _marked(word: str, place: Place) -> Text:
    """The word that stands there is easy to find among the others."""
    from rich.text import Text

    return Text(word, "bold green" if word == place.known else "")


def _chance(probability: float) -> str:
    percent = 100 * probability
    return f"{percent:.1f} %" if percent >= 0.1 else f"{percent:.2g} %"
