"""`elmo substitutes`: show the likeliest words at each position of a sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from elmokit.cli.engine_options import threads_option

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from elmokit.lm.substitution import SubstitutePosition, SubstituteRanking


@click.command("substitutes", short_help="Show the likeliest words at each position of a sentence.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "-m", "--model", default="builtin", show_default=True, help="Path or name of the model."
)
@click.option(
    "-k",
    "--count",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of words to show per position.",
)
@click.option(
    "--word",
    "number",
    type=click.IntRange(min=1),
    help="Show only the word with this number, counted from 1.",
)
@click.option("--at", metavar="WORD", help="Show only the positions of this word.")
@click.option("--tokenized", is_flag=True, help="The words are separated by spaces already.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per sentence.")
@click.option(
    "--state",
    type=click.Choice(["settled", "zero"]),
    default="settled",
    show_default=True,
    help="Initial state of each sentence.",
)
@threads_option
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
    """Show the words that the model finds likeliest at each position of a sentence.

    Each TEXT is a sentence; on stdin, each line is one. The forward model sees the words before the
    position, the backward model those after it; neither sees the word itself. "both" is the
    normalized product of their probabilities. Rank and probability are those of the word in the
    sentence. <UNK> stands for any word that is not in the vocabulary.

    \b
    elmo substitutes "She went to the bank ."
    elmo substitutes "She went to the bank ." --at bank -k 20
    elmo substitutes -m DIR --word 5 --json "She went to the bank ."

    In Python: `elmokit.lm.substitutes`.
    """
    if number is not None and at is not None:
        raise click.UsageError("give either --word or --at, not both")
    if not texts and sys.stdin.isatty():
        raise click.UsageError("give a TEXT, or pipe sentences to stdin")

    from rich.console import Console

    from elmokit.elmo import Elmo
    from elmokit.lm.substitution import substitutes
    from elmokit.text.files import STDIN, read_lines

    elmo = Elmo.load(model, state=state, threads=threads)
    console = Console(highlight=False)
    lines = texts or (line for _, line in read_lines(STDIN) if line.strip())
    for index, line in enumerate(lines):
        words = line.split() if tokenized else elmo.tokenize(line)
        selected = _select(words, number, at)
        (positions,) = substitutes(elmo, [words], k=count)
        if as_json:
            places = [{"index": i} | positions[i].to_dict() for i in selected]
            click.echo(json.dumps({"index": index, "words": words, "places": places}))
            continue
        if index:
            console.print()
        if number is None and at is None:
            _print_sentence(console, positions)
        else:
            for i in selected:
                _print_position(console, words, i, positions[i])


def _select(words: Sequence[str], number: int | None, at: str | None) -> list[int]:
    """Return the indices of the words to show."""
    from elmokit.errors import InputError

    sentence = " ".join(words)
    if not words:
        raise InputError("the text has no words")
    if number is not None:
        if number > len(words):
            raise InputError(
                f"--word is {number}, but the sentence has {len(words)} words: {sentence}"
            )
        return [number - 1]
    selected = [i for i, word in enumerate(words) if at in (None, word)]
    if not selected:
        raise InputError(f"--at is {at!r}, which is not a word of the sentence: {sentence}")
    return selected


def _print_sentence(console: Console, positions: Sequence[SubstitutePosition]) -> None:
    """Print one row per position, with the words only."""
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="dim", border_style="dim", show_lines=True)
    table.add_column("", justify="right", style="dim")
    width = min(16, max(len(position.word) for position in positions))
    table.add_column("word", min_width=width)
    for name in ("forward", "backward", "both"):
        table.add_column(name, ratio=1)
    for number, position in enumerate(positions, start=1):
        cells = []
        for ranking in (position.forward, position.backward, position.both):
            cell = Text.assemble((_rank_text(ranking) + "\n", "dim"))
            for word, _ in ranking.best:
                cell.append_text(_word_text(word, position)).append(" ")
            cells.append(cell)
        table.add_row(str(number), _title(position), *cells)
    console.print(table)


def _print_position(
    console: Console, words: Sequence[str], i: int, position: SubstitutePosition
) -> None:
    """Print the words of one position with their probabilities."""
    from rich.table import Table
    from rich.text import Text

    sentence = Text(" ").join(
        Text(word, "bold cyan" if j == i else "") for j, word in enumerate(words)
    )
    console.print(sentence)
    rankings = (position.forward, position.backward, position.both)
    table = Table(header_style="dim", border_style="dim")
    for name, ranking in zip(("forward", "backward", "both"), rankings, strict=True):
        table.add_column(f"{name}\n{_rank_text(ranking)}", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    for best in zip(*(ranking.best for ranking in rankings), strict=True):
        cells: list[Text] = []
        for word, probability in best:
            cells += [_word_text(word, position), Text(_percent(probability), "dim")]
        table.add_row(*cells)
    console.print(table)


def _title(position: SubstitutePosition) -> Text:
    from rich.text import Text

    title = Text(position.word, "bold cyan")
    if position.known == position.word:
        return title
    return title.append(f"\n{position.known}", "dim")


def _rank_text(ranking: SubstituteRanking) -> str:
    """Return rank and probability of the word in the sentence."""
    return f"rank {ranking.rank:,}, {_percent(ranking.probability)}"


def _word_text(word: str, position: SubstitutePosition) -> Text:
    """Return a word, highlighted if it is the one in the sentence."""
    from rich.text import Text

    return Text(word, "bold green" if word == position.known else "")


def _percent(probability: float) -> str:
    percent = 100 * probability
    return f"{percent:.1f} %" if percent >= 0.1 else f"{percent:.2g} %"
