"""What this machine can do at best: products per second, and bytes read per second.

A small loop of the compiled kernel multiplies and adds in registers, and another one reads memory,
on all threads at the same time. With them, `seconds_at_limit` says how long some work takes at
least: each product takes the time of its arithmetic or of reading its weights, whichever is longer
(the roofline model).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from elmokit.engine import native
from elmokit.engine.work import Work
from elmokit.errors import InputError, MissingExtra

READ_SIZES = tuple(1 << power for power in range(16, 30, 2))
"""Sizes in bytes at which the memory is measured: 64 KiB to 256 MiB, for all threads together."""
BLOCK = 4096
"""Bytes that a thread reads at least."""


@dataclass(frozen=True)
class Limits:
    """The limits of a machine with some number of threads."""

    threads: int
    """Number of threads that were measured together."""
    flops: dict[str, float | None]
    """Operations per second by dtype, two per product; None for bfloat16 if the CPU widens it."""
    isas: dict[str, str]
    """Instruction set that reached them, by dtype."""
    reads: dict[int, float]
    """Bytes per second by the size of what is read again and again."""

    def flops_of(self, dtype: str) -> float:
        """Return the operations per second of a dtype: those of float32 if it is widened."""
        found = self.flops[dtype] or self.flops["float32"]
        assert found is not None
        return found

    def reads_of(self, size: int) -> float:
        """Return the bytes per second of a size, interpolated between those measured."""
        sizes = sorted(self.reads)
        if size <= sizes[0]:
            return self.reads[sizes[0]]
        for low, high in pairwise(sizes):
            if size <= high:
                share = math.log(size / low) / math.log(high / low)
                return math.exp(
                    (1 - share) * math.log(self.reads[low]) + share * math.log(self.reads[high])
                )
        return self.reads[sizes[-1]]

    def seconds_at_limit(self, work: Iterable[Work], dtype: str = "float32") -> float:
        """Return the time that some work takes at least."""
        flops = self.flops_of(dtype)
        return sum(
            part.times * max(part.flops / flops, part.bytes / self.reads_of(part.bytes))
            for part in work
        )

    def to_json(self) -> dict[str, object]:
        """Return the limits as a JSON object, in operations and bytes per second."""
        return {
            "threads": self.threads,
            "flops": {dtype: value and round(value) for dtype, value in self.flops.items()},
            "instruction_sets": self.isas,
            "reads": {str(size): round(value) for size, value in self.reads.items()},
        }


def measure_limits(
    threads: int | None = None,
    *,
    seconds: float = 0.1,
    rounds: int = 5,
    on_message: Callable[[str], None] = lambda text: None,
) -> Limits:
    """Measure what this machine can do at best. The machine should be idle otherwise.

    The command `elmo bench --limits` does this. Needs the compiled kernel.

    Args:
        threads: Number of threads; by default as many as the process may use.
        seconds: Length of each measurement.
        rounds: Number of measurements, of which the best counts.
        on_message: Called with a line of text before each kind of measurement.
    """
    if not native.kernel_available():
        raise MissingExtra(f"the compiled kernel is missing: {native.kernel_error()}")
    if threads is not None and not 1 <= threads <= 4096:
        raise InputError(f"threads is {threads!r:.60}; expected 1 to 4096, or None for all")
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; expected 1 or more")
    if not 0 < seconds <= 60:
        raise InputError(f"seconds is {seconds}; expected a number above 0, up to 60")
    count = threads or native.usable_processors()
    flops: dict[str, float | None] = {}
    isas: dict[str, str] = {}
    for dtype in native.DTYPES:
        isas[dtype] = native.instruction_sets(dtype)[0]
        flops[dtype] = None
        if dtype == "bfloat16" and isas[dtype] not in native.BFLOAT16_ISAS:
            continue  # weights are widened, and multiplied as float32
        on_message(f"measuring products in {dtype}")
        flops[dtype] = 2 * max(
            native.measure_products(isas[dtype], dtype, count, seconds) for _ in range(rounds)
        )
    reads = {}
    for size in READ_SIZES:
        if size < BLOCK * count:
            continue
        on_message(f"measuring reads of {size >> 10:,} KiB")
        reads[size] = max(
            native.measure_reads(isas["float32"], size, count, seconds) for _ in range(rounds)
        )
    if not reads:
        raise InputError(f"threads is {count}; expected {READ_SIZES[-1] // BLOCK} or fewer")
    return Limits(count, flops, isas, reads)
