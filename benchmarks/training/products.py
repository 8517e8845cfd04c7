"""The large float32 products of training, by the kernel and by PyTorch.

    python benchmarks/training/products.py tiny                   (see --help)

Multiplies random matrices of the shapes of a training step, in one thread, the kernel and PyTorch
in turns. Prints the median speed of each by CPU time, and how much that is of what
`elmo bench --limits` measures, for one thread and in CPU time, too. Which of them training uses on
this CPU is decided in `nn/products.py`. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from elmokit import _native
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.sizes import SIZES
from elmokit.engine import native
from elmokit.nn.products import kernel_multiplies
from elmokit.nn.softmax import BLOCK_ROWS
from phases import products_per_second

WORDS = 2240
"""Words of a shard: half of a step of the recommended recipe."""
DISTINCT = 900
"""Distinct words of a shard, which the character network reads."""
NEGATIVES = 2112
"""Words that the softmax compares with, padded."""
MIN_SECONDS = 0.02
"""CPU time of a measurement, at least."""


class Product(NamedTuple):
    """A product of two matrices, which may be stored transposed."""

    name: str
    rows: int
    depth: int
    columns: int
    a_transposed: bool = False
    b_transposed: bool = False


def products_of(config: BiLMConfig) -> list[Product]:
    """Return the shapes of a training step."""
    width, cells, filters = config.lstm.width, config.lstm.cells, config.char_cnn.n_filters
    gates = 4 * cells
    return [
        Product("LSTM: inputs", WORDS, width, gates),
        Product("LSTM: gradient of inputs", WORDS, gates, width, b_transposed=True),
        Product("LSTM: gradient of weights", 2 * width + 1, WORDS, gates, a_transposed=True),
        Product("LSTM: gradient of projection", cells, WORDS, width, a_transposed=True),
        Product("softmax: logits", BLOCK_ROWS, width, NEGATIVES, b_transposed=True),
        Product("softmax: gradient of hidden", BLOCK_ROWS, NEGATIVES, width),
        Product("softmax: gradient of weights", NEGATIVES, BLOCK_ROWS, width, a_transposed=True),
        Product("characters: highway", DISTINCT, filters, 2 * filters),
        Product("characters: gradient of inputs", DISTINCT, 2 * filters, filters, False, True),
        Product("characters: gradient of weights", filters, DISTINCT, 2 * filters, True),
    ]


def measure(product: Product, rounds: int) -> dict[str, float]:
    """Return the median speed of the kernel and of PyTorch, in FLOP per second of CPU time."""
    rng = np.random.default_rng(0)
    rows, depth, columns = product.rows, product.depth, product.columns
    a, b = (
        rng.standard_normal(shape[::-1] if transposed else shape, dtype=np.float32)
        for shape, transposed in (
            ((rows, depth), product.a_transposed),
            ((depth, columns), product.b_transposed),
        )
    )
    out = np.empty((rows, columns), np.float32)
    isa, transposed = native.instruction_set(), (product.a_transposed, product.b_transposed)
    factors = [
        tensor.t() if is_transposed else tensor
        for tensor, is_transposed in zip(map(torch.from_numpy, (a, b)), transposed, strict=True)
    ]

    def by_kernel() -> None:
        _native.multiply(isa, a, transposed[0], b, transposed[1], None, out, False)

    def by_pytorch() -> None:
        torch.mm(*factors, out=torch.from_numpy(out))

    systems: dict[str, Callable[[], None]] = {"kernel": by_kernel, "PyTorch": by_pytorch}
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, multiply in systems.items():
            seconds[name].append(_seconds(multiply))
    flops = 2 * rows * depth * columns
    return {name: flops / statistics.median(each) for name, each in seconds.items()}


def _seconds(call: Callable[[], None]) -> float:
    """Return the CPU time of a call: the mean of as many as take long enough."""
    calls, start = 0, time.thread_time()
    while (elapsed := time.thread_time() - start) < MIN_SECONDS or not calls:
        call()
        calls += 1
    return elapsed / calls


def main() -> None:
    """Measure all shapes, print a table and the same as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("size", choices=sorted(SIZES))
    parser.add_argument("--rounds", type=int, default=9, help="turns of each [default: 9]")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    limit = 2 * products_per_second("float32")
    chosen = "the kernel" if kernel_multiplies(torch.ones(1, 1)) else "PyTorch"
    print(f"{arguments.size}: GFLOP/s of one thread; the limit is {limit / 1e9:.0f}")
    result: dict[str, dict[str, float]] = {}
    for product in products_of(SIZES[arguments.size]):
        speeds = result[product.name] = measure(product, arguments.rounds)
        shape = f"{product.rows:,}×{product.depth:,}×{product.columns:,}"
        shown = "   ".join(f"{n} {v / 1e9:4.0f} ({v / limit:4.0%})" for n, v in speeds.items())
        print(f"{product.name:32} {shape:>18}   {shown}", flush=True)
    print(f"training uses {chosen} on this CPU")
    print(json.dumps({"size": arguments.size, "limit_flops": limit, "flops": result}))


if __name__ == "__main__":
    main()
