"""Where a training step spends its CPU time, phase by phase.

    python benchmarks/training/phases.py tiny                     (see --help)

Trains with elmokit on made-up text, in this process, and adds up the CPU time of each thread in
each phase; what a phase calls counts for the phase called. CPU time, unlike the time on the clock,
says little about other work on the machine; caches and clock speed are shared all the same. The
last line is JSON.

The lines before say how many floating-point operations the matrix products of characters, LSTM and
softmax take per word, two for each multiplication, how long they would take at this machine's
limit, and which part of all CPU time that is: nothing can train in less. (The products of Muon do
not count: they are the same for any number of words per step.) The limit is that of
`elmo bench --limits`, but for one thread and in CPU time, too. Characters are computed once for
each distinct word of a shard, so their part depends on the text.

Two figures tell what more threads cannot share: `one thread` is the part of the CPU time in which
the other shards wait (sums of gradients, Python), and `slowest shard` how much more CPU time than
the mean the slowest shard of a step takes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.sizes import SIZES
from elmokit.engine import native
from elmokit.engine.native import Products
from elmokit.engine.work import character_weights
from elmokit.nn import bfloat16, convolution, language_model, lstm, softmax
from elmokit.train import RECIPES, Budget, TrainingReport, loop, pretrain, trainer
from elmokit.train.corpus import Corpus
from elmokit.train.muon import Muon
from elmokit.train.optimizer import PartitionedOptimizer
from elmokit.train.recipe import OptimizerName
from trainer_data import made_up_corpus

WARM_UP_STEPS = 2
"""Steps before the measurement."""

SHARD = "shard: gathers, joins, Python"
SUM = "step: sum of gradients"
STEP = "step: Python"

Function = Callable[..., Any]


class PhaseClock:
    """CPU seconds by phase, over all threads."""

    def __init__(self) -> None:
        """Start with no phases."""
        self.distinct_words = 0
        """Words whose vectors were computed from characters."""
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, list[float]] = defaultdict(list)
        """CPU seconds of each call, with what it calls."""
        self._lock = threading.Lock()
        self._open = threading.local()

    def timed(self, phase: str, function: Function) -> Function:
        """Return the function, timed; what it calls under another phase is not counted here."""

        @functools.wraps(function)
        def run(*arguments: Any, **options: Any) -> Any:
            stack = self._open.__dict__.setdefault("stack", [])
            stack.append(0.0)
            started = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                seconds = time.thread_time() - started
                inner = stack.pop()
                if stack:
                    stack[-1] += seconds
                with self._lock:
                    self.seconds[phase] += seconds - inner
                    self.calls[phase].append(seconds)

        return run

    def counted(self, character_vectors: Function) -> Function:
        """Return the function, which counts its words."""

        @functools.wraps(character_vectors)
        def run(config: Any, weights: Any, ids_UC: Any, *arguments: Any) -> Any:
            with self._lock:
                self.distinct_words += len(ids_UC)
            return character_vectors(config, weights, ids_UC, *arguments)

        return run

    def wrap(self, phase: str, owner: Any, name: str) -> None:
        """Replace a function of a module or class by its timed version."""
        is_static = isinstance(vars(owner).get(name), staticmethod)
        timed = self.timed(phase, getattr(owner, name))
        setattr(owner, name, staticmethod(timed) if is_static else timed)


def instrument(clock: PhaseClock) -> None:
    """Wrap the functions of a training step."""
    from elmokit import _native

    class TimedKernel:
        """`_native`, with timed functions."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_native, name)

    kernel = TimedKernel()
    for name, phase in (
        ("convolution_forward", "characters: windows, forward"),
        ("convolution_backward", "characters: windows, backward"),
        ("lstm_forward", "LSTM: steps, forward"),
        ("lstm_backward", "LSTM: steps, backward"),
        ("softmax", "softmax: exponentials"),
        ("tile_affine_forward", "characters: products of bfloat16, forward"),
        ("tile_affine_backward", "characters: products of bfloat16, backward"),
        ("tile_lstm_forward", "LSTM: all in bfloat16, forward"),
        ("tile_lstm_backward", "LSTM: all in bfloat16, backward"),
        ("tile_softmax", "softmax: all in bfloat16"),
    ):
        setattr(kernel, name, clock.timed(phase, getattr(_native, name)))
    language_model.character_vectors = clock.counted(language_model.character_vectors)
    for module in (bfloat16, convolution, lstm, softmax):
        module._native = kernel  # type: ignore[attr-defined]
    for phase, owner, name in (
        ("characters: highways and projection, forward", language_model, "character_vectors"),
        ("characters: table, forward", convolution._TableConvolution, "forward"),
        ("characters: table, backward", convolution._TableConvolution, "backward"),
        ("LSTM: products over all words, forward", lstm._KernelLSTM, "forward"),
        ("LSTM: products over all words, backward", lstm._KernelLSTM, "backward"),
        ("softmax: products", softmax._SoftmaxLoss, "forward"),
        ("softmax: scaling of gradients", softmax._SoftmaxLoss, "backward"),
        ("softmax: rows of the step", trainer, "gather_softmax_rows"),
        ("autograd: the rest of the backward pass", torch.autograd, "grad"),
        (SHARD, trainer.Trainer, "_compute_shard"),
        (SUM, trainer.Trainer, "_sum_gradients"),
        ("step: norm", trainer, "_square"),
        ("step: optimizer", PartitionedOptimizer, "step"),
        ("step: Muon", Muon, "step"),
        (STEP, trainer.Trainer, "train_step"),
        ("text: encoding", loop, "encode_distinct_words"),
    ):
        clock.wrap(phase, owner, name)


def main() -> None:
    """Train some steps, and print the phases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", choices=sorted(SIZES))
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="recommended")
    parser.add_argument("--cells", type=int, help="cells per layer, instead of the size's")
    parser.add_argument("--width", type=int, help="width of a layer, instead of the size's")
    parser.add_argument(
        "--products", choices=get_args(native.Products), default="float32", help="as in `Recipe`"
    )
    parser.add_argument(
        "--optimizer", choices=get_args(OptimizerName), help="instead of the recipe's"
    )
    parser.add_argument("--steps", type=int, default=20, help="steps to measure [default: 20]")
    parser.add_argument("--batch", type=int, help="words per step, instead of the recipe's")
    parser.add_argument("--shards", type=int, default=2, help="one thread each [default: 2]")
    parser.add_argument("--corpus", type=Path, help="directory that `elmo corpus` made")
    arguments = parser.parse_args()
    clock = PhaseClock()
    instrument(clock)
    marks: list[tuple[float, int]] = []

    def on_step(report: TrainingReport) -> None:
        marks.append((time.process_time(), report.progress.tokens))
        if len(marks) == WARM_UP_STEPS:
            clock.seconds.clear()
            clock.calls.clear()
            clock.distinct_words = 0
        if len(marks) == WARM_UP_STEPS + arguments.steps:
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = (
            Corpus.open(arguments.corpus) if arguments.corpus else made_up_corpus(folder / "corpus")
        )
        with contextlib.suppress(KeyboardInterrupt):
            pretrain(
                corpus.path,
                folder / "run",
                config=architecture(arguments),
                recipe=RECIPES[arguments.recipe].replace(
                    shards=arguments.shards,
                    products=arguments.products,
                    optimizer=arguments.optimizer,
                    batch=arguments.batch,
                ),
                budget=Budget(tokens=10**15),
                checkpoint_minutes=1e9,
                on_step=on_step,
            )
    report(arguments, clock, marks)


def architecture(arguments: argparse.Namespace) -> BiLMConfig:
    """Return the named size, with other cells or another width if given."""
    config = SIZES[arguments.size]
    lstm = replace(
        config.lstm,
        cells=arguments.cells or config.lstm.cells,
        width=arguments.width or config.lstm.width,
    )
    return replace(config, lstm=lstm)


def products_per_word(config: BiLMConfig, negatives: int, distinct: float) -> dict[str, float]:
    """Return the multiplications per word, forward and backward, by part of the network.

    Args:
        config: Architecture of the model.
        negatives: Number of words that the softmax compares with.
        distinct: Number of words per word that are computed from characters.
    """
    lstm = config.lstm
    gates, projection = 2 * lstm.width * 4 * lstm.cells, lstm.cells * lstm.width
    both_directions, passes = 2, 3  # forward, gradients of the inputs, gradients of the weights
    return {
        "characters": passes * distinct * character_weights(config),
        "LSTM": both_directions * passes * lstm.layers * (gates + projection),
        "softmax": both_directions * passes * negatives * lstm.width,
    }


def products_per_second(products: Products) -> float:
    """Return the multiplications per second of CPU time that a thread can do at best."""
    isa = native.instruction_set(products)
    rates = []
    for _ in range(9):
        clock, cpu = time.perf_counter(), time.thread_time()
        rate = native.measure_products(isa, products, 1, 0.1)
        clock, cpu = time.perf_counter() - clock, time.thread_time() - cpu
        rates.append(rate * clock / cpu)
    return statistics.median(rates)


def report(
    arguments: argparse.Namespace, clock: PhaseClock, marks: list[tuple[float, int]]
) -> None:
    """Print a table, and the same as JSON."""
    first, last = marks[WARM_UP_STEPS - 1], marks[WARM_UP_STEPS + arguments.steps - 1]
    process, words = (after - before for before, after in zip(first, last, strict=True))
    phases = dict(sorted(clock.seconds.items(), key=lambda item: -item[1]))
    phases["everything else"] = process - sum(phases.values())
    isa = native.instruction_set(arguments.products)
    print(f"{arguments.size}, {arguments.recipe}, {arguments.products}, {isa}: CPU time by phase")
    for phase, seconds in phases.items():
        print(f"{phase:46} {seconds / words * 1e6:8.2f} µs/word {seconds / process:7.1%}")
    print(f"{'all':46} {process / words * 1e6:8.2f} µs/word")
    products = products_per_word(
        architecture(arguments), RECIPES[arguments.recipe].negatives, clock.distinct_words / words
    )
    speed = products_per_second(arguments.products)
    for part, count in products.items():
        took = f"{count / speed * 1e6:8.2f} µs/word at the limit"
        print(f"{'products of the ' + part:29} {2 * count / 1e6:8.2f} MFLOP/word {took}")
    at_limit = sum(products.values()) / speed
    print(f"limit: {2 * speed / 1e9:.1f} GFLOP/s per thread; {at_limit * 1e6:.2f} µs/word", end="")
    print(f", {at_limit * words / process:.1%} of all")
    serial = (clock.seconds[SUM] + clock.seconds[STEP]) / process
    shards = [
        clock.calls[SHARD][i : i + arguments.shards]
        for i in range(0, arguments.steps * arguments.shards, arguments.shards)
    ]
    slowest = statistics.fmean(max(step) / statistics.fmean(step) for step in shards) - 1
    print(f"one thread {serial:.1%}; slowest shard {slowest:+.1%}; {words} words")
    result = {
        "size": arguments.size,
        "recipe": arguments.recipe,
        "products": arguments.products,
        "words": words,
        "cpu_seconds": process,
        "flops_per_word": {part: 2 * count for part, count in products.items()},
        "limit_flops": 2 * speed,
        "at_limit_seconds": at_limit * words,
        "one_thread": serial,
        "slowest_shard": slowest,
        "phases": phases,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
