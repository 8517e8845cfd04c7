"""`elmo bench`: measure how fast a model runs on this machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from elmokit.cli.engine_options import device_option, dtype_option, threads_option
from elmokit.cli.paths import PATH

if TYPE_CHECKING:
    from rich.table import Table

    from elmokit.engine.limits import Limits


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
    type=PATH,
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
@click.option(
    "--limits",
    is_flag=True,
    help="Measure what this machine can do at best, too, and print every figure as a percentage "
    "of it; without MODEL and --size, measure the machine alone.",
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
    limits: bool,
    dtype: str,
    threads: int | None,
    device: str,
) -> None:
    """Measure how fast MODEL, or a model of a given size, runs on this machine.

    Prints a table of medians; the last line has the same numbers as JSON. Nothing else should run
    on the machine meanwhile. For a comparison with other implementations see benchmarks/peers.

    The limits are multiplications and additions per second in registers, and bytes read per second
    by the size of what is read. The percentage is that of the speed at which matrix products would
    take no more than their arithmetic or reading their weights, whichever is longer.

    \b
    elmo bench --size small
    elmo bench --size original --dtype int8 --threads 2
    elmo bench path/to/model --file text.txt
    elmo bench --size original --limits

    In Python: `elmokit.benchmark`, `elmokit.measure_limits`, `elmokit.roofline`.
    """
    import json
    from itertools import islice

    from rich.console import Console
    from rich.table import Table

    from elmokit.bench import (
        SCENARIOS,
        benchmark,
        percent_of_limit,
        roofline,
        synthetic_sentences,
        words_per_second,
    )
    from elmokit.bilm.random import random_bilm
    from elmokit.elmo import Elmo
    from elmokit.engine.limits import measure_limits
    from elmokit.errors import InputError
    from elmokit.progress import ProgressDisplay
    from elmokit.text.files import read_lines

    if model is not None and size is not None:
        raise click.UsageError("give either a MODEL or a --size")
    if model is None and size is None and not limits:
        raise click.UsageError("give a MODEL, a --size or --limits")
    if limits and device != "cpu":
        raise click.UsageError(f"--limits measures the CPU; with --device {device} leave it out")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(justify="right")
    settings: dict[str, object] = {
        "model": model or size,
        "dtype": dtype,
        "device": device,
        "threads": threads,
        "rounds": rounds,
    }
    found: Limits | None = None
    with ProgressDisplay() as display:
        if limits:
            found = measure_limits(
                threads, rounds=rounds, on_message=lambda text: display.update(text, 0)
            )
            _add_limits(table, found)
            settings["limits"] = found.to_json()
        if model is not None or size is not None:
            start = time.perf_counter()
            if size is not None:
                elmo = Elmo(random_bilm(size), dtype=dtype, threads=threads, device=device)
            else:
                elmo = Elmo.load(str(model), dtype=dtype, threads=threads, device=device)
            settings["load_seconds"] = round(time.perf_counter() - start, 3)
            settings["engine"] = elmo.engine
            lines = (
                synthetic_sentences()
                if file is None
                else elmo.words(line for _, line in read_lines(file))
            )
            texts = [words for words in islice(lines, sentences) if words]
            if not texts:
                raise InputError(f"{file} has no sentences to embed")
            settings["sentences"] = len(texts)
            scenarios = list(SCENARIOS)
            medians = benchmark(
                elmo,
                texts,
                rounds=rounds,
                on_scenario=lambda name: display.update(
                    f"measuring {name}", scenarios.index(name), len(scenarios)
                ),
            )
            table.add_row("model", repr(elmo), "")
            settings |= {name: round(value, 3) for name, value in medians.items()}
            at_limit = roofline(elmo, found, texts) if found else {}
            percents = {
                name: percent_of_limit(name, medians[name], limit)
                for name, limit in at_limit.items()
            }
            for name, value in medians.items():
                shown = f"{value:,.1f} ms, " if SCENARIOS[name] == "ms" else ""
                shown += f"{words_per_second(name, value):,.0f} words/s"
                percent = f"{percents[name]:.0f} % of the limit" if found else ""
                table.add_row(name, shown, percent)
            if found:
                settings["roofline"] = {n: float(f"{limit:.4g}") for n, limit in at_limit.items()}
                settings["percent"] = {name: round(value, 1) for name, value in percents.items()}
    width = Console(stderr=True).width
    Console(width=max(120, width), highlight=False).print(table)
    click.echo(json.dumps(settings))


def _add_limits(table: Table, limits: Limits) -> None:
    """Add the limits of the machine to a table."""
    for dtype, flops in limits.flops.items():
        isa = limits.isas[dtype]
        shown = "multiplied as float32" if flops is None else f"{flops / 1e9:,.0f} GFLOP/s"
        table.add_row(f"products in {dtype}", shown, f"{isa}, {limits.threads} threads")
    for size, reads in limits.reads.items():
        unit = f"{size >> 20:,} MiB" if size >= 1 << 20 else f"{size >> 10:,} KiB"
        table.add_row(f"reads of {unit}", f"{reads / 1e9:,.1f} GB/s", "")
