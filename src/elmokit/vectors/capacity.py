"""What a large job takes: core-hours, storage, shards and cost, from the speed of this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from elmokit.bench import benchmark, synthetic_sentences
from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import InputError
from elmokit.vectors.reducers import Reduction, row_shape
from elmokit.vectors.shard_workers import available_processors

SPEED_SCENARIO = "natural order, one call"
"""Scenario of `elmo bench` that a large job is like."""


@dataclass(frozen=True)
class CapacityAssumptions:
    """What an estimate assumes, besides the measured speed.

    The prices are round numbers in any currency, and nobody's offer: give those that you pay.
    """

    core_hour_price: float = 0.04
    """Price of a core-hour."""
    terabyte_month_price: float = 23.0
    """Price of keeping 10^12 bytes for a month."""
    months: float = 1.0
    """Months that the results are kept."""
    efficiency: float = 0.9
    """Share of the measured speed that workers reach side by side."""
    spot_discount: float = 0.6
    """Discount on machines that may be taken away, where a job is requeued."""
    redone: float = 0.05
    """Share of the work that is done twice on such machines, because workers die."""
    words_per_sentence: float = 21.0
    """Words of a sentence."""
    bytes_per_word: float = 5.7
    """Bytes of a word in the input, with the space."""
    forms: float = 2e6
    """Distinct word forms of the text, for one vector per form."""
    shard_hours: float = 0.5
    """Time of a shard on one core, about: what a killed worker loses at most."""
    cores: int = 100
    """Cores that work at the same time."""


@dataclass(frozen=True)
class CapacityEstimate:
    """What a job takes."""

    words: float
    """Words to embed."""
    words_per_second: float
    """Measured speed of one core."""
    core_hours: float
    """Core-hours, with the assumed efficiency."""
    input_bytes: float
    """Size of the text."""
    output_bytes: float
    """Size of what is kept."""
    all_vectors_bytes: float
    """Size of all vectors in float16, for comparison."""
    shards: int
    """Number of shards."""
    storage_cost: float
    """Cost of keeping the results."""
    engines: dict[str, dict[str, float]]
    """Core-hours, hours and cost of the computation, by how it is run."""
    assumptions: dict[str, float]
    """What was assumed."""

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON holds it."""
        return asdict(self)


def measure_speed(elmo: Elmo, *, sentences: int = 500, rounds: int = 3) -> float:
    """Return how many words per second a model embeds on this machine, by `elmo bench`."""
    measured = benchmark(elmo, islice(synthetic_sentences(), sentences), rounds=rounds)
    return measured[SPEED_SCENARIO]


def estimate_job(
    elmo: Elmo,
    words: float,
    *,
    reduction: Reduction | None = None,
    layers: LayerChoice = "mix",
    words_per_second: float | None = None,
    assumptions: CapacityAssumptions | None = None,
) -> CapacityEstimate:
    """Return what embedding so many words takes: core-hours, storage, shards and cost.

    The command `elmo plan` does this.

    Args:
        elmo: The model; load it with `threads=1`, because the speed of one core counts.
        words: Number of words to embed.
        reduction: What is kept; by default all vectors in float32.
        layers: Layers of the vectors.
        words_per_second: Speed of one core; measured by default.
        assumptions: Prices and sizes.
    """
    if not words > 0:
        raise InputError(f"words is {words:g}; expected more than 0")
    assumed = assumptions or CapacityAssumptions()
    if not 0 < assumed.efficiency <= 1 or assumed.shard_hours <= 0 or assumed.cores < 1:
        raise InputError(
            "expected an efficiency above 0 and up to 1, shard hours above 0 and at least 1 core"
        )
    if not 0 <= assumed.spot_discount <= 1:
        raise InputError(f"the spot discount is {assumed.spot_discount:g}; expected 0 to 1")
    for name in ("core_hour_price", "terabyte_month_price", "months", "redone"):
        if not getattr(assumed, name) >= 0:
            raise InputError(f"{name} is {getattr(assumed, name):g}; expected 0 or more")
    for name in ("words_per_sentence", "bytes_per_word", "forms"):
        if not getattr(assumed, name) > 0:
            raise InputError(f"{name} is {getattr(assumed, name):g}; expected more than 0")
    reduction = reduction or Reduction()
    speed = measure_speed(elmo) if words_per_second is None else words_per_second
    if not speed > 0:
        raise InputError(f"words_per_second is {speed:g}; expected more than 0")
    # A sample embeds few sentences, but reads all of them; the estimate counts it as embedding.
    hours = words / (speed * assumed.efficiency) / 3600
    row = row_shape(elmo, layers)
    spot = 1 - assumed.spot_discount
    engines = {}
    for name, factor, price, cores in (
        ("one machine, all its cores", 1.0, 1.0, available_processors()),
        ("SLURM array or Ray cluster", 1.0, 1.0, assumed.cores),
        ("the same, machines that may be taken away", 1 + assumed.redone, spot, assumed.cores),
    ):
        engines[name] = {
            "core_hours": hours * factor,
            "hours": hours * factor / cores,
            "cost": hours * factor * assumed.core_hour_price * price,
        }
    output = stored_bytes(reduction, row, words, assumed)
    return CapacityEstimate(
        words=words,
        words_per_second=speed,
        core_hours=hours,
        input_bytes=words * assumed.bytes_per_word,
        output_bytes=output,
        all_vectors_bytes=words * float(np.prod(row)) * 2,
        shards=max(1, round(hours / assumed.shard_hours)),
        storage_cost=output / 1e12 * assumed.terabyte_month_price * assumed.months,
        engines=engines,
        assumptions=asdict(assumed),
    )


def stored_bytes(
    reduction: Reduction, row: tuple[int, ...], words: float, assumed: CapacityAssumptions
) -> float:
    """Return the size of what a job keeps, without headers.

    Args:
        reduction: What is kept.
        row: Shape of a vector.
        words: Number of words of the text.
        assumed: Sizes of sentences and vocabularies.
    """
    numbers = float(np.prod(row))
    sentences = words / assumed.words_per_sentence
    if reduction.kind == "forms":  # merged: mean, count, the word
        return min(assumed.forms, words) * (4 * numbers + 8 + 8)
    if reduction.kind == "uses":
        uses = len(reduction.targets) * reduction.max_uses
        sentence = assumed.words_per_sentence * (assumed.bytes_per_word + 3)
        return min(uses, words) * (4 * numbers + 72 + sentence)
    vector = {
        "float32": 4 * numbers,
        "float16": 2 * numbers,
        "int8": numbers + 4 * numbers / row[-1],
        "kmeans": float(reduction.parts * (1 if reduction.clusters <= 256 else 2)),
    }[reduction.store]
    if reduction.kind == "sentence":
        return sentences * (vector + 28)
    return words * (vector + 4) + sentences * 28
