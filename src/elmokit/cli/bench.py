"""`elmo bench`: measure how fast a model runs on this machine."""

from __future__ import annotations

import time

import click

from elmokit.cli.engine_options import device_option, dtype_option, threads_option


@click.command("bench", short_help="Measure how fast a model runs on this machine.")
@click.argument("model", required=False)
@click.option(
    "--size",
    type=click.Choice(["tiny", "small", "medium", "original"]),
    help="Measure a model of this size with random weights, instead of MODEL; the built-in model "
    "is tiny, the other sizes are those of the authors.",
)
@click.option(
    "--file",
    type=click.Path(),
    show_default="synthetic sentences",
    help="Text file to embed, one sentence per line, compressed or not.",
)
@click.option("--sentences", default=2000, show_default=True, help="Number of sentences to embed.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of measurements; their median is printed.",
)
@dtype_option
@threads_option
@device_option
def command(
    model: str | None,
    size: str | None,
    file: str | None,
    sentences: int,
    rounds: int,
    dtype: str,
    threads: int | None,
    device: str,
) -> None:
    """Measure how fast MODEL, or a model of a given size, runs on this machine.

    Prints a table of medians; the last line has the same numbers as JSON. Nothing else should run
    on the machine meanwhile. For a comparison with other implementations see benchmarks/peers.

    \b
    elmo bench --size small
    elmo bench --size original --dtype int8 --threads 2
    elmo bench path/to/model --file text.txt

    In Python: `elmokit.benchmark`.
    """
    import json
    from itertools import islice

    from rich.console import Console
    from rich.table import Table

    from elmokit.bench import SCENARIOS, benchmark, synthetic_sentences
    from elmokit.bilm.random import random_bilm
    from elmokit.elmo import Elmo
    from elmokit.errors import InputError
    from elmokit.progress import ProgressDisplay
    from elmokit.text.files import read_lines

    if (model is None) == (size is None):
        raise click.UsageError("give either a MODEL or a --size")
    start = time.perf_counter()
    if size is not None:
        elmo = Elmo(random_bilm(size), dtype=dtype, threads=threads, device=device)
    else:
        elmo = Elmo.load(str(model), dtype=dtype, threads=threads, device=device)
    load_seconds = time.perf_counter() - start
    lines = (
        synthetic_sentences() if file is None else elmo.words(line for _, line in read_lines(file))
    )
    texts = [words for words in islice(lines, sentences) if words]
    if not texts:
        raise InputError(f"{file} has no sentences to embed")

    scenarios = list(SCENARIOS)
    with ProgressDisplay() as display:
        medians = benchmark(
            elmo,
            texts,
            rounds=rounds,
            on_scenario=lambda name: display.update(
                f"measuring {name}", scenarios.index(name), len(scenarios)
            ),
        )
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("model", repr(elmo))
    for scenario, value in medians.items():
        unit = SCENARIOS[scenario]
        table.add_row(scenario, f"{value:,.1f} ms" if unit == "ms" else f"{value:,.0f} {unit}")
    width = Console(stderr=True).width
    Console(width=max(100, width), highlight=False).print(table)
    settings = {
        "model": model or size,
        "engine": elmo.engine,
        "dtype": dtype,
        "device": device,
        "threads": threads,
        "load_seconds": round(load_seconds, 3),
        "sentences": len(texts),
        "rounds": rounds,
    }
    click.echo(json.dumps(settings | {name: round(value, 2) for name, value in medians.items()}))
