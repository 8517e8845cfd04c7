"""The count of products and bytes, the limits that follow, the shares of threads. No timings."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import pytest

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.sizes import SIZES
from elmokit.engine import native
from elmokit.engine.limits import READ_SIZES, Limits, measure_limits
from elmokit.engine.work import Work, character_weights, count_work, input_weights, step_weights
from elmokit.errors import InputError

SMALL = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 3), (2, 5)), embedding_dim=4, highways=2),
    lstm=LSTMConfig(cells=7, width=6, layers=2),
)
LIMITS = Limits(
    threads=2,
    flops={"float32": 100.0, "bfloat16": None, "int8": 400.0},
    isas={"float32": "avx2", "bfloat16": "avx2", "int8": "avx2"},
    reads={1024: 64.0, 4096: 16.0},
)
needs_kernel = pytest.mark.skipif(
    not native.kernel_available(), reason=f"the kernel is not built: {native.kernel_error()}"
)


# -- counting ------------------------------------------------------------------------------------


def test_weights_by_hand() -> None:
    assert character_weights(SMALL) == 2 * (2 * 8 * 8) + 8 * 6
    assert input_weights(SMALL) == 6 * 28
    assert step_weights(SMALL) == 6 * 28 + 7 * 6


@pytest.mark.parametrize("size", SIZES)
def test_weights_are_those_of_the_model(size: str) -> None:
    """All matrices of a model are counted, each once."""
    config = SIZES[size]
    from elmokit.bilm.weights import expected_shapes

    matrices = sum(
        int(np.prod(shape))
        for name, shape in expected_shapes(config).items()
        if name.endswith(".weight") and "convolution" not in name
    )
    passes = 2 * config.lstm.layers
    counted = character_weights(config) + passes * (input_weights(config) + step_weights(config))
    assert counted == matrices


def test_the_original_model_takes_151_mflop_per_word_in_its_lstms() -> None:
    work = [part for part in count_work(SIZES["original"], [22], 0) if part.part != "characters"]
    flops = sum(part.flops * part.times for part in work)
    assert round(flops / 22 / 1e6) == 151
    steps = [part for part in work if part.part == "steps"]
    assert sum(part.bytes * part.times for part in steps) // 22 == 4 * 4 * 10_485_760


def test_work_of_a_batch_by_hand() -> None:
    found = list(count_work(SMALL, [4, 3, 1], new_words=5, dtype="int8"))
    assert found == [
        Work("characters", 2 * 5 * character_weights(SMALL), character_weights(SMALL), 1),
        Work("inputs", 2 * 8 * input_weights(SMALL), input_weights(SMALL), 4),
        Work("steps", 2 * 1 * step_weights(SMALL), step_weights(SMALL), 4 * 1),
        Work("steps", 2 * 2 * step_weights(SMALL), step_weights(SMALL), 4 * 2),
        Work("steps", 2 * 3 * step_weights(SMALL), step_weights(SMALL), 4 * 1),
    ]


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("int8", 1)])
def test_bytes_depend_on_the_dtype_and_operations_do_not(dtype: str, size: int) -> None:
    exact = list(count_work(SMALL, [4, 3], 5, "int8"))
    found = list(count_work(SMALL, [4, 3], 5, dtype))
    assert [part.bytes for part in found] == [size * part.bytes for part in exact]
    assert [part.flops for part in found] == [part.flops for part in exact]


def test_no_new_words_and_no_sentences() -> None:
    assert not [part for part in count_work(SMALL, [3], 0) if part.part == "characters"]
    assert [part.part for part in count_work(SMALL, [], 3)] == ["characters"]


# -- limits --------------------------------------------------------------------------------------


def test_a_product_takes_its_arithmetic_or_its_weights() -> None:
    assert LIMITS.seconds_at_limit([Work("steps", 1000, 64, 3)]) == 3 * 10
    assert LIMITS.seconds_at_limit([Work("steps", 10, 1024, 3)]) == pytest.approx(3 * 16)
    assert LIMITS.seconds_at_limit([Work("steps", 1000, 64, 3)], "int8") == 3 * 2.5
    assert LIMITS.seconds_at_limit([Work("steps", 1000, 64, 3)], "bfloat16") == 3 * 10


def test_reads_are_interpolated() -> None:
    assert LIMITS.reads_of(1) == LIMITS.reads_of(1024) == 64
    assert LIMITS.reads_of(2048) == pytest.approx(32)
    assert LIMITS.reads_of(4096) == pytest.approx(16)
    assert LIMITS.reads_of(10**9) == 16


@needs_kernel
def test_limits_of_this_machine_are_well_formed() -> None:
    limits = measure_limits(1, seconds=1e-4, rounds=1)
    assert limits.threads == 1 and list(limits.reads) == list(READ_SIZES)
    assert all(value > 0 for value in limits.reads.values())
    assert list(limits.flops) == list(native.DTYPES)
    for dtype, flops in limits.flops.items():
        widened = dtype == "bfloat16" and limits.isas[dtype] not in native.BFLOAT16_ISAS
        assert flops is None if widened else flops > 0
        assert limits.flops_of(dtype) > 0


@needs_kernel
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads is 0"),
        ({"rounds": 0}, "rounds is 0"),
        ({"seconds": 0}, "seconds is 0"),
    ],
)
def test_wrong_arguments_of_a_measurement(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure_limits(**arguments)


# -- the shares of threads -------------------------------------------------------------------------


def busy_share(config: BiLMConfig, lengths: list[int], threads: int, slow: float = 1) -> float:
    """Return the share of time in which the threads have work, if tasks take as long as they count.

    Args:
        config: Architecture of the model.
        lengths: Lengths of the sentences of a batch, with marks.
        threads: Number of threads.
        slow: Speed of the first thread; the others have the speed 1.
    """
    plan = native.plan_batch(config, len(lengths), threads, "float32")
    assert plan.subteams * plan.members <= threads
    longest_first = sorted(lengths, reverse=True)
    ends = [len(lengths) * block // plan.blocks for block in range(plan.blocks + 1)]
    assert all(0 < b - a <= 128 for a, b in pairwise(ends))
    tasks = [sum(longest_first[a:b]) for a, b in pairwise(ends) for _ in range(2)]
    speeds = [plan.members - (1 - slow if team == 0 else 0) for team in range(plan.subteams)]
    free = [(0.0, team) for team in range(plan.subteams)]
    for task in tasks:
        at, team = heapq.heappop(free)
        heapq.heappush(free, (at + task / speeds[team], team))
    whole = threads - (1 - slow)
    return sum(tasks) / (max(at for at, _ in free) * whole)


def natural_batch(threads: int, mean: int, deviation: int) -> list[int]:
    """Return the lengths of a batch as `embed` makes it for this many threads."""
    words = native.words_per_batch(threads)
    rng = np.random.default_rng(0)
    lengths: list[int] = []
    while sum(lengths) < words:
        lengths.append(2 + max(1, round(rng.normal(mean, deviation))))
    return lengths


@needs_kernel
@pytest.mark.parametrize("threads", [1, 2, 4, 8, 16, 64])
@pytest.mark.parametrize("size", ["tiny", "small", "medium", "original"])
@pytest.mark.parametrize(("mean", "deviation"), [(21, 2), (5, 1)], ids=["sentences", "short"])
def test_threads_are_busy(threads: int, size: str, mean: int, deviation: int) -> None:
    """Batches of sentences, and of short ones of 3 to 8 words: nobody waits for long."""
    config = SIZES[size]
    lengths = natural_batch(threads, mean, deviation)
    assert busy_share(config, lengths, threads) > 0.75


@needs_kernel
@pytest.mark.parametrize("size", ["tiny", "small", "medium"])
def test_a_slow_thread_takes_fewer_tasks(size: str) -> None:
    """With half of one of two cores gone, a quarter of the speed may be lost, not a half."""
    lengths = natural_batch(2, 21, 2)
    assert busy_share(SIZES[size], lengths, 2, slow=0.5) > 0.8


@needs_kernel
def test_a_few_sentences_of_the_original_are_shared_by_all() -> None:
    """Their weights are read from memory, once for all threads."""
    for threads in (2, 8, 16):
        plan = native.plan_batch(SIZES["original"], 1, threads, "float32")
        assert plan == (1, threads, 1)
    assert native.plan_batch(SIZES["small"], 1, 2, "float32") == (2, 1, 1)
    assert native.plan_batch(SIZES["original"], 97, 1, "float32") == (1, 1, 1)
