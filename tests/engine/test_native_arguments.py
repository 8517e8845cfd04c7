"""Wrong calls of the compiled kernel: always an exception, never a crash.

Hypothesis makes wrong calls of every function, which a child process does; see
`benchmarks/attack/kernel_victim.py`, and `benchmarks/attack/kernel.py` for the same at any scale.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

from elmokit.engine import native

if not native.kernel_available():
    pytest.skip(f"the kernel is not built: {native.kernel_error()}", allow_module_level=True)


sys.path.insert(0, str(REPOSITORY / "benchmarks" / "attack"))
from kernel_calls import (
    VALID_CALLS,
    argument_names,
    names_in_module,
    network_arguments,
)
from kernel_victim import MUTATIONS, Case, Victim

from elmokit import _native

SIZES = {
    **network_arguments(np.random.default_rng(0)),
    "filters": [(1, 5), (2, 9)],
    "characters": 20,
    "embedding_dim": 4,
    "max_characters": 8,
    "highways": 1,
    "character_projection": True,
    "cells": 6,
    "width": 3,
    "layers": 2,
    "projection": True,
    "dtype": "float32",
    "instruction_set": "portable",
    "threads": 2,
}


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    process = Victim()
    yield process
    process.close()


def test_every_function_is_attacked() -> None:
    assert names_in_module() == set(VALID_CALLS), "add the new function to VALID_CALLS"


@st.composite
def wrong_calls(draw: st.DrawFn) -> Case:
    function = draw(st.sampled_from(sorted(VALID_CALLS)))
    arguments = st.sampled_from(argument_names(function))
    mutations = st.lists(st.tuples(arguments, st.sampled_from(MUTATIONS)), max_size=3)
    return {
        "function": function,
        "seed": draw(st.integers(0, 2**31)),
        "mutations": draw(mutations),
    }


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=wrong_calls())
def test_a_wrong_call_raises_and_never_crashes(victim: Victim, case: Case) -> None:
    assert victim.call(case)["finding"] is None


# -- each of these crashed, or returned nonsense ---------------------------------------------------


def make(**changes: Any) -> Any:
    return _native.Network(**{**SIZES, **changes})


def load(network: Any, sizes: dict[str, Any] = SIZES, *, skip: str = "") -> Any:
    n, width, cells = sum(c for _, c in sizes["filters"]), sizes["width"], sizes["cells"]
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.5, shape).astype(np.float32)

    if skip != "embedding":
        network.load_embedding(floats(sizes["characters"], sizes["embedding_dim"]))
    for i, (filter_width, count) in enumerate(sizes["filters"]):
        if skip != f"filters {i}":
            network.load_filters(i, floats(filter_width, 4, count), floats(count))
    if skip != "highway 0":
        network.load_highway(0, floats(n, n), floats(n), floats(n, n), floats(n))
    if skip != "projection":
        network.load_projection(floats(n, width), floats(width))
    for layer in range(sizes["layers"]):
        for direction in range(2):
            if skip != f"layer {layer} in direction {direction}":
                shapes = (width, 4 * cells), (width, 4 * cells), (4 * cells,), (cells, width)
                network.load_lstm(layer, direction, *(floats(*shape) for shape in shapes))
    return network


def words(**changes: np.ndarray) -> list[np.ndarray]:
    arrays = {
        "ids": np.ones((3, 8), np.int16),
        "lengths": np.array([1, 8, 0]),
        "out": np.zeros((3, 3), np.float32),
    }
    return list({**arrays, **changes}.values())


def batch(**changes: np.ndarray) -> list[np.ndarray]:
    arrays = {
        "words": np.ones((3, 3), np.float32),
        "alive": np.array([2, 1]),
        "mirror": np.array([2, 1, 0]),
        "hidden": np.zeros((2, 2, 2, 3), np.float32),
        "cell": np.zeros((2, 2, 2, 6), np.float32),
        "layers": np.zeros((3, 3, 6), np.float32),
    }
    return list({**arrays, **changes}.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threads": 0}, "threads is 0; expected 1 to 4096"),
        ({"threads": 10**6}, "threads is 1000000"),
        ({"layers": 0}, "layers is 0; expected 1 to 4096"),
        ({"highways": -1}, "highways is -1"),
        ({"max_characters": -1}, "max_characters is -1"),
        ({"characters": 0}, "characters is 0"),
        ({"cells": 2**31 - 1}, "cells is 2147483647; expected 1 to 1048576"),
        ({"filters": []}, "number of all filters is 0"),
        ({"filters": [(9, 5)]}, "a width is 9; expected 1 to 8"),
        ({"filters": [(1, 2**20)] * 3}, "number of all filters is 3145728"),
        ({"character_projection": False}, "width is 3, and there are 14 filters"),
        ({"projection": False}, "cells is 6, and width is 3"),
        ({"cell_clip": math.nan}, "cell_clip is nan"),
        ({"projection_clip": -1.0}, "projection_clip is -1"),
        ({"instruction_set": "avx9"}, "avx9"),
        ({"instruction_set": "emulated_bf16"}, "emulated_bf16 is not supported"),
        ({"dtype": "float16"}, "dtype is 'float16'; expected 'float32', 'bfloat16' or 'int8'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_an_architecture_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


VALID_MEASUREMENT = {"instruction_set": "portable", "threads": 1, "seconds": 1e-4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threads": 0}, "threads is 0; expected 1 to 4096"),
        ({"seconds": math.nan}, "seconds is nan"),
        ({"seconds": 0.0}, "seconds is 0.0"),
        ({"seconds": 1e9}, "expected a number above 0, up to 60"),
        ({"instruction_set": "avx9"}, "avx9 is not supported"),
    ],
)
def test_a_measurement_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    arguments = {**VALID_MEASUREMENT, **changes}
    with pytest.raises(ValueError, match=message):
        _native.measure_products(**arguments, dtype="float32")
    with pytest.raises(ValueError, match=message):
        _native.measure_reads(**arguments, bytes=1 << 16)


@pytest.mark.parametrize("size", [0, -1, 4095, (1 << 30) + 1, 1 << 62])
def test_memory_of_a_size_that_is_not_read(size: int) -> None:
    with pytest.raises(ValueError, match=f"bytes is {size}; expected 4096 to"):
        _native.measure_reads(**VALID_MEASUREMENT, bytes=size)


@pytest.mark.parametrize("name", ["threads", "sentences", "step_products", "step_bytes"])
def test_a_plan_of_nothing(name: str) -> None:
    sizes = {"threads": 2, "sentences": 3, "step_products": 4, "step_bytes": 5}
    with pytest.raises(ValueError, match=f"{name} is 0; expected 1 to"):
        _native.plan(**{**sizes, name: 0})


@pytest.mark.parametrize("missing", ["embedding", "filters 1", "highway 0", "projection"])
def test_words_before_all_weights_are_loaded(missing: str) -> None:
    with pytest.raises(ValueError, match=f"{missing} was not loaded"):
        load(make(), skip=missing).word_vectors(*words())


@pytest.mark.parametrize("missing", ["layer 0 in direction 0", "layer 1 in direction 1"])
def test_sentences_before_all_weights_are_loaded(missing: str) -> None:
    with pytest.raises(ValueError, match=f"{missing} was not loaded"):
        load(make(), skip=missing).contextualize(*batch())


@pytest.mark.parametrize(
    ("layer", "direction", "message"),
    [(0, 2, "direction is 2; expected 0 to 1"), (1, -1, "direction is -1"), (2, 0, "layer is 2")],
)
def test_a_layer_that_does_not_exist(layer: int, direction: int, message: str) -> None:
    shapes = (3, 24), (3, 24), (24,), (6, 3)
    with pytest.raises(ValueError, match=message):
        make().load_lstm(layer, direction, *(np.zeros(shape, np.float32) for shape in shapes))


WRONG_ARRAYS = {
    "dtype": (TypeError, lambda x: x.astype(np.float64), "array of float64; expected .* float32"),
    "stride": (ValueError, lambda x: np.repeat(x, 2, -1)[..., ::2], "not C-contiguous"),
    "axes": (ValueError, lambda x: x[None], "axes; expected a NumPy array of float32 with"),
    "bytes": (TypeError, lambda x: x.astype(">f4"), "big-endian float32"),
    "list": (TypeError, lambda x: x.tolist(), "found list; expected a NumPy array"),
}


@pytest.mark.parametrize("kind", WRONG_ARRAYS)
def test_a_wrong_output_is_refused_and_not_left_untouched(kind: str) -> None:
    error, change, message = WRONG_ARRAYS[kind]
    with pytest.raises(error, match="out: .*" + message):
        load(make()).word_vectors(*words(out=change(np.zeros((3, 3), np.float32))))
    with pytest.raises(error, match="layers: .*" + message):
        load(make()).contextualize(*batch(layers=change(np.zeros((3, 3, 6), np.float32))))


def test_an_output_that_cannot_be_written() -> None:
    out = np.zeros((3, 3), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: the array is read-only"):
        load(make()).word_vectors(*words(out=out))


def test_an_output_that_is_also_an_input() -> None:
    hidden = np.zeros((2, 2, 2, 3), np.float32)
    with pytest.raises(ValueError, match=r"words shares memory|hidden shares memory with words"):
        load(make()).contextualize(*batch(hidden=hidden, words=hidden.reshape(8, 3)[:3]))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"alive": np.array([2**62, 2**62])}, ValueError, "alive contains 4611686018427387904"),
        ({"alive": np.array([1, 2])}, ValueError, "must not increase"),
        ({"alive": np.array([2, 0])}, ValueError, "alive contains 0"),
        ({"alive": np.zeros(0, np.int64)}, ValueError, "alive is empty"),
        ({"alive": np.array([2])}, ValueError, "does not add up to the 3 words"),
        ({"mirror": np.array([0, 1, 3])}, IndexError, "mirror contains 3; expected 0 to 2"),
        ({"mirror": np.array([0, -1, 2])}, IndexError, "mirror contains -1"),
        ({"mirror": np.array([0, 1, 1])}, ValueError, "mirror contains 1 twice"),
        ({"words": np.full((3, 3), np.nan, np.float32)}, ValueError, "words contains nan"),
        ({"cell": np.full((2, 2, 2, 6), np.inf, np.float32)}, ValueError, "cell contains inf"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("dtype", native.DTYPES)
def test_a_batch_that_cannot_be(
    changes: dict[str, np.ndarray], error: type[Exception], message: str, dtype: str
) -> None:
    with pytest.raises(error, match=message):
        load(make(dtype=dtype)).contextualize(*batch(**changes))


@pytest.mark.parametrize("dtype", native.DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(dtype: str, value: float) -> None:
    weight = np.ones((14, 3), np.float32)
    weight[5, 1] = value
    message = f"weight contains {value}, at element 16; expected finite numbers"
    with pytest.raises(ValueError, match=message):
        make(dtype=dtype).load_projection(weight, np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("isa", "dtype"),
    [(isa, dtype) for dtype in native.DTYPES for isa in native.instruction_sets(dtype)],
)
def test_an_overflow_stays_visible(isa: str, dtype: str) -> None:
    """Weights so large that their products overflow: NaN, and not some number."""
    network = load(make(dtype=dtype, instruction_set=isa, tanh=False))
    huge, zeros = np.full((14, 14), 3e38, np.float32), np.zeros(14, np.float32)
    network.load_embedding(np.ones((20, 4), np.float32))
    network.load_filters(0, np.full((1, 4, 5), 2, np.float32), np.ones(5, np.float32))
    network.load_filters(1, np.full((2, 4, 9), 2, np.float32), np.ones(9, np.float32))
    network.load_highway(0, huge, zeros, huge, zeros)
    ids, lengths, out = words()
    network.word_vectors(ids, lengths, out)
    assert np.isnan(out).all()


def convolution(positions: np.ndarray) -> list[Any]:
    zeros = np.zeros((2, 5), np.float32)
    ids, lengths = np.zeros((2, 8), np.int16), np.array([8, 2])
    table, bias = np.zeros((4, 3 * 16), np.float32), np.zeros(5, np.float32)
    return ["portable", [(3, 5)], 8, False, ids, lengths, zeros, positions, zeros + 1, bias, table]


@pytest.mark.parametrize(("row", "position"), [(0, 6), (0, 32767), (0, -1), (1, 3)])
def test_positions_of_windows_that_do_not_exist(row: int, position: int) -> None:
    positions = np.zeros((2, 16), np.int16)
    positions[row, 4] = position
    with pytest.raises(IndexError, match=f"positions contains {position}; expected 0 to"):
        _native.convolution_backward(*convolution(positions))


def test_the_last_window_of_a_word_is_accepted() -> None:
    positions = np.zeros((2, 16), np.int16)
    positions[0, 4], positions[1, 4] = 5, 2
    _native.convolution_backward(*convolution(positions))


def test_weights_loaded_again_replace_the_old_ones() -> None:
    """The tables of characters that occurred before are computed anew."""
    network, other = load(make()), load(make())
    network.word_vectors(*words())
    embedding = np.full((20, 4), 0.7, np.float32)
    network.load_embedding(embedding)
    other.load_embedding(embedding)
    results = [words() for _ in range(2)]
    network.word_vectors(*results[0])
    other.word_vectors(*results[1])
    assert (results[0][2] == results[1][2]).all()


def test_many_sentences_in_training() -> None:
    """More rows than a 32-bit product of rows and tiles can count."""
    n = 100_000
    zeros = [np.zeros((n, size), np.float32) for size in (1, 16, 64, 16, 16, 1)]
    weights = np.zeros((1, 64), np.float32), np.ones((16, 1), np.float32)
    infinite = (math.inf, math.inf)
    zeros[2] += 1
    _native.lstm_forward("portable", np.array([n]), *weights, *infinite, *zeros)
    outputs = zeros[-1]
    assert (outputs == outputs[0]).all() and outputs[0] != 0
