"""`elmo plan`: what a large job takes, from the speed of this machine."""

from __future__ import annotations

import json
from typing import Any

import click

from elmokit.cli.engine_options import dtype_option

ASSUMED = {
    "core_hour_price": ("price of a core-hour", "--price"),
    "terabyte_month_price": ("price of keeping 10¹² bytes for a month", "--storage-price"),
    "months": ("months that the results are kept", "--months"),
    "efficiency": ("share of the speed that workers reach side by side", "--efficiency"),
    "spot_discount": ("discount on machines that may be taken away", "--spot-discount"),
    "redone": ("share of the work that is done twice on those", "--redone"),
    "words_per_sentence": ("words of a sentence", "--sentence-words"),
    "bytes_per_word": ("bytes of a word in the text, with the space", "--word-bytes"),
    "forms": ("distinct words (--reduce forms)", "--forms"),
    "shard_hours": ("hours of a shard on one core", "--shard-hours"),
    "cores": ("cores of the cluster", "--cores"),
}
"""What each field of `CapacityAssumptions` is called in the output, and the option that sets it."""


@click.command("plan", short_help="Estimate what embedding a large text takes.")
@click.option("--words", type=float, required=True, help="Number of words to embed, such as 1e11.")
@click.option(
    "-m",
    "--model",
    default="builtin",
    show_default=True,
    help="Model: a path or a name. tiny, small, medium and original are models of these sizes with "
    "random weights, which are as fast.",
)
@click.option(
    "--reduce",
    type=click.Choice(["vectors", "sentence", "forms", "uses"]),
    default="vectors",
    show_default=True,
    help="What is kept: all vectors, one per sentence, per word form, or a sample of uses.",
)
@click.option(
    "--store",
    type=click.Choice(["float32", "float16", "int8", "kmeans"]),
    default="float32",
    show_default=True,
    help="How vectors are stored.",
)
@click.option("--all-layers", is_flag=True, help="Keep all layers instead of one vector.")
@click.option(
    "--targets", type=int, default=1000, show_default=True, help="Number of words of --reduce uses."
)
@click.option(
    "--uses", type=int, default=200, show_default=True, help="Uses of each word of --reduce uses."
)
@click.option(
    "--words-per-second",
    type=float,
    show_default="measured now, with one thread",
    help="Speed of one core.",
)
@click.option("--price", type=float, default=0.04, show_default=True, help="Price of a core-hour.")
@click.option(
    "--storage-price",
    type=float,
    default=23.0,
    show_default=True,
    help="Price of a terabyte for a month.",
)
@click.option(
    "--months", type=float, default=1.0, show_default=True, help="Months to keep the results."
)
@click.option(
    "--efficiency",
    type=float,
    default=0.9,
    show_default=True,
    help="Share of the measured speed that workers reach side by side.",
)
@click.option(
    "--spot-discount",
    type=float,
    default=0.6,
    show_default=True,
    help="Discount on machines that may be taken away.",
)
@click.option(
    "--redone",
    type=float,
    default=0.05,
    show_default=True,
    help="Share of the work that is done twice on such machines.",
)
@click.option(
    "--sentence-words",
    type=float,
    default=21.0,
    show_default=True,
    help="Words of a sentence, on average.",
)
@click.option(
    "--word-bytes",
    type=float,
    default=5.7,
    show_default=True,
    help="Bytes of a word in the text, on average.",
)
@click.option(
    "--forms", type=float, default=2e6, show_default=True, help="Number of distinct words."
)
@click.option(
    "--shard-hours",
    type=float,
    default=0.5,
    show_default=True,
    help="Hours that a shard takes on one core.",
)
@click.option("--cores", type=int, default=100, show_default=True, help="Cores of the cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimate as JSON.")
@dtype_option
def command(
    words: float,
    model: str,
    reduce: Any,
    store: Any,
    all_layers: bool,
    targets: int,
    uses: int,
    words_per_second: float | None,
    price: float,
    storage_price: float,
    months: float,
    efficiency: float,
    spot_discount: float,
    redone: float,
    sentence_words: float,
    word_bytes: float,
    forms: float,
    shard_hours: float,
    cores: int,
    as_json: bool,
    dtype: str,
) -> None:
    """Estimate what embedding a large text takes: core-hours, storage, shards and cost.

    The speed is that of this machine, measured with one thread as `elmo bench` does, unless
    --words-per-second gives it; nothing else should run meanwhile. All other numbers are
    assumptions with options of their own, and are printed. The default prices are round numbers,
    nobody's offer, and in any currency.

    \b
    elmo plan --words 1e11 --model original --dtype int8 --reduce sentence
    elmo plan --words 1e9 --model small --dtype int8 --store float16

    In Python: `elmokit.vectors.estimate_job`.
    """
    from elmokit.bilm.random import random_bilm
    from elmokit.bilm.sizes import SIZES
    from elmokit.elmo import Elmo
    from elmokit.vectors.capacity import CapacityAssumptions, estimate_job
    from elmokit.vectors.reducers import Reduction

    if model in SIZES:
        elmo = Elmo(random_bilm(model), dtype=dtype, threads=1)
    else:
        elmo = Elmo.load(model, dtype=dtype, threads=1)
    names = tuple(f"word {k}" for k in range(targets)) if reduce == "uses" else ()
    stored: Any = "float32" if reduce in ("forms", "uses") else store
    estimate = estimate_job(
        elmo,
        words,
        reduction=Reduction(reduce, stored, targets=names, max_uses=uses),
        layers="all" if all_layers else "mix",
        words_per_second=words_per_second,
        assumptions=CapacityAssumptions(
            core_hour_price=price,
            terabyte_month_price=storage_price,
            months=months,
            efficiency=efficiency,
            spot_discount=spot_discount,
            redone=redone,
            words_per_sentence=sentence_words,
            bytes_per_word=word_bytes,
            forms=forms,
            shard_hours=shard_hours,
            cores=cores,
        ),
    )
    if as_json:
        click.echo(json.dumps(estimate.as_dict()))
        return
    measured = "measured now" if words_per_second is None else "given"
    click.echo(f"model       {elmo!r}")
    click.echo(f"speed       {estimate.words_per_second:,.0f} words/s per core, {measured}")
    click.echo(f"work        {estimate.core_hours:,.0f} core-hours, {estimate.shards:,} shards")
    click.echo(f"text        {_size(estimate.input_bytes)}")
    click.echo(
        f"results     {_size(estimate.output_bytes)} ({reduce}, {stored}); all vectors in float16 "
        f"would be {_size(estimate.all_vectors_bytes)}"
    )
    duration = "1 month" if months == 1 else f"{months:g} months"
    click.echo(f"storage     {estimate.storage_cost:,.2f} for {duration}")
    click.echo("")
    click.echo(f"{'run on':<43}{'core-hours':>12}{'hours':>12}{'cost':>12}")
    for name, row in estimate.engines.items():
        click.echo(
            f"{name:<43}{row['core_hours']:>12,.0f}{row['hours']:>12,.1f}{row['cost']:>12,.2f}"
        )
    click.echo("")
    click.echo("assumed; the prices are round numbers of ours, nobody's offer: give those you pay")
    for field, value in estimate.assumptions.items():
        text, option = ASSUMED[field]
        click.echo(f"  {text:<57}{value:>12,.10g}  {option}")


def _size(count: float) -> str:
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"
