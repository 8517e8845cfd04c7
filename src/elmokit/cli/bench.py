"""`elmo bench`: how fast a model runs on this machine."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from elmokit.elmo import Elmo

SCENARIOS = {
    "one sentence of 20 words": "ms",
    "batches of 64, sorted": "words/s",
    "natural order, one call": "words/s",
    "one document of 2,000 words": "words/s",
}


def bench(
    elmo: Elmo,
    sentences: Sequence[Sequence[str]],
    rounds: int = 5,
    tell: Callable[[str], None] = lambda scenario: None,
) -> dict[str, float]:
    """The median of each scenario: milliseconds for one sentence, else words a second."""
    words = [word for sentence in sentences for word in sentence]
    by_length = sorted(sentences[:256], key=len)
    work: dict[str, list[Sequence[Sequence[str]]]] = {
        "one sentence of 20 words": [[words[:20]]],
        "batches of 64, sorted": [by_length[i : i + 64] for i in range(0, len(by_length), 64)],
        "natural order, one call": [sentences],
        "one document of 2,000 words": [[words[:2000]]],
    }
    medians = {}
    for scenario, unit in SCENARIOS.items():
        tell(scenario)
        calls = work[scenario]
        count = sum(len(sentence) for call in calls for sentence in call)
        seconds = []
        for turn in range(1 + rounds):  # the first is not counted
            elmo.forget_words()
            start = time.perf_counter()
            for call in calls:
                elmo.embed(call)
            if turn:
                seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        medians[scenario] = 1000 * median if unit == "ms" else count / median
    return medians


def made_up_sentences(seed: int = 0) -> Iterator[list[str]]:
    """Sentences with the lengths and the repetition of words that English has (Zipf)."""
    source = random.Random(seed)
    letters = "etaoinshrdlu"
    lexicon = ["".join(source.choices(letters, k=source.randint(1, 9))) for _ in range(30_000)]
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(lexicon))))
    while True:
        length = max(1, round(source.gauss(21, 9)))
        yield source.choices(lexicon, cum_weights=weights, k=length)


@click.command("bench", short_help="Measure how fast a model runs on this machine.")
@click.argument("model", required=False)
@click.option(
    "--size",
    type=click.Choice(["small", "medium", "original"]),
    help="Random numbers of a published size instead of a MODEL.",
)
@click.option("--file", type=click.Path(), help="Sentences to embed, one a line; else made up.")
@click.option("--sentences", default=2000, show_default=True, help="How many of them.")
@click.option("--rounds", default=5, show_default=True, help="Medians over so many rounds.")
@click.option("--dtype", type=click.Choice(["float32", "int8"]), default="float32")
@click.option("--threads", type=click.IntRange(min=1), help="Cores to use; all by default.")
def command(
    model: str | None,
    size: str | None,
    file: str | None,
    sentences: int,
    rounds: int,
    dtype: str,
    threads: int | None,
) -> None:
    """Measure how fast MODEL, or a model of a published size, runs on this machine.

    Prints a table of medians; the last line is the same as JSON. The machine should have nothing
    else to do. For a comparison with other implementations see benchmarks/peers.

    \b
    elmo bench --size small
    elmo bench --size original --dtype int8 --threads 2
    elmo bench path/to/model --file text.txt
    """
    import json
    from itertools import islice
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from elmokit.bilm.random import random_bilm
    from elmokit.elmo import Elmo
    from elmokit.errors import InputError

    if (model is None) == (size is None):
        raise click.UsageError("give a MODEL or a --size")
    start = time.perf_counter()
    if size is not None:
        elmo = Elmo(random_bilm(size), dtype=dtype, threads=threads)
    else:
        elmo = Elmo.load(str(model), dtype=dtype, threads=threads)
    loaded = time.perf_counter() - start
    lines = (
        made_up_sentences()
        if file is None
        else elmo.words(Path(file).read_text(encoding="utf-8").splitlines())
    )
    chosen = [words for words in islice(lines, sentences) if words]
    if not chosen:
        raise InputError(f"{file} has no sentences to embed")

    console = Console(stderr=True)
    with console.status("measuring") as status:
        medians = bench(elmo, chosen, rounds, lambda name: status.update(f"measuring {name}"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("model", repr(elmo))
    for scenario, value in medians.items():
        unit = SCENARIOS[scenario]
        table.add_row(scenario, f"{value:,.1f} ms" if unit == "ms" else f"{value:,.0f} {unit}")
    Console(width=max(100, console.width), highlight=False).print(table)
    facts: dict[str, Any] = {
        "model": model or size,
        "engine": elmo.engine,
        "dtype": dtype,
        "threads": threads,
        "load_seconds": round(loaded, 3),
        "sentences": len(chosen),
        "rounds": rounds,
    }
    click.echo(json.dumps(facts | {name: round(value, 2) for name, value in medians.items()}))
