"""The compiled kernel against the reference, on every instruction set that this machine has.

Two promises are tested: it computes what the reference computes, for every architecture; and a
sentence has the same bits whatever is computed beside it, in which order and by how many threads.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import small_config

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.random import random_bilm
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray, Weights, expected_shapes
from elmokit.engine import native
from elmokit.engine.batching import IntArray, pack
from elmokit.engine.bfloat16 import RoundedWeights, round_to_bfloat16
from elmokit.engine.native import NativeNetwork
from elmokit.engine.reference import ReferenceNetwork
from elmokit.errors import InputError

if not native.kernel_available():
    pytest.skip(f"the kernel is not built: {native.kernel_error()}", allow_module_level=True)

ISAS = native.instruction_sets()
KERNELS = [(isa, dtype) for dtype in native.DTYPES for isa in native.instruction_sets(dtype)]
PADDING = 260
PATIENCE = 10 if "ELMOKIT_SANITIZER" in os.environ else 1
"""Factor of the time that children and threads may take: sanitizers slow everything down."""

every_isa = pytest.mark.parametrize("isa", ISAS)
every_kernel = pytest.mark.parametrize(("isa", "dtype"), KERNELS)
fuzz = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ODD = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 5), (2, 9), (4, 23)), embedding_dim=5, highways=1),
    lstm=LSTMConfig(cells=331, width=75, layers=2),
)
"""No size is a multiple of any vector's; large enough that all threads take part in a step."""


# -- networks, words and sentences ---------------------------------------------------------------


def make_weights(config: BiLMConfig, seed: int = 0) -> dict[str, FloatArray]:
    """Trained-like: products of about 1, so that gates neither sleep nor saturate."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in expected_shapes(config).items():
        fan_in = 1 if name.endswith(("bias", "embedding")) else np.prod(shape[:-1])
        weights[name] = rng.normal(0, 1 / np.sqrt(fan_in), shape).astype(np.float32)
    return weights


def make_words(
    config: BiLMConfig, lengths: list[int], seed: int = 0
) -> tuple[np.ndarray, IntArray]:
    """Words of these lengths in random characters, padded."""
    rng = np.random.default_rng(seed)
    ids_UC = np.full((len(lengths), config.char_cnn.max_characters), PADDING, np.int16)
    for row, length in zip(ids_UC, lengths, strict=True):
        row[:length] = rng.integers(0, config.char_cnn.characters, length)
    return ids_UC, np.array(lengths, np.int64)


def make_state(config: BiLMConfig, rows: int, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    zeros = State.zeros(config, rows)
    return State(
        rng.uniform(-1, 1, zeros.hidden.shape).astype(np.float32),
        rng.uniform(-2, 2, zeros.cell.shape).astype(np.float32),
    )


def make_inputs(config: BiLMConfig, words: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (words, config.lstm.width)).astype(np.float32)


def run(
    network: NativeNetwork | ReferenceNetwork, sentences: list[FloatArray], state: State
) -> tuple[list[FloatArray], State]:
    """Sentences (T, P) to their layers (L+1, T, D), in order, and the state by sentence."""
    lengths = [len(sentence) for sentence in sentences]
    packing = pack(lengths)
    words_NP = np.concatenate(sentences)[packing.source]
    order = packing.order.tolist()
    layers_LND, after = network.contextualize(words_NP, packing, state.select(order))
    ends = np.cumsum(lengths)[:-1]
    return np.split(packing.unpack(layers_LND), ends, axis=1), after.select(
        np.argsort(order).tolist()
    )


@st.composite
def architectures(draw: st.DrawFn) -> BiLMConfig:
    """Any that BiLMConfig allows, small."""
    filters = tuple(
        draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 70)), min_size=1, max_size=3))
    )
    cnn_projection, projection = draw(st.booleans()), draw(st.booleans())
    sizes = st.integers(1, 70) | st.sampled_from([32, 64, 96])  # of any size, and of whole tiles
    width = draw(sizes) if cnn_projection else sum(n for _, n in filters)
    clips = st.sampled_from([None, 0.25, 3])
    return BiLMConfig(
        char_cnn=CharCNNConfig(
            filters=filters,
            embedding_dim=draw(st.integers(1, 9)),
            activation=draw(st.sampled_from(["relu", "tanh"])),
            highways=draw(st.integers(0, 2)),
            projection=cnn_projection,
            characters=draw(st.sampled_from([261, 300])),
            max_characters=draw(st.integers(6, 12)),
        ),
        lstm=LSTMConfig(
            cells=draw(sizes) if projection else width,
            width=width,
            layers=draw(st.integers(1, 3)),
            projection=projection,
            skip=draw(st.booleans()),
            cell_clip=draw(clips),
            projection_clip=draw(clips),
        ),
    )


def is_exact(isa: str, dtype: native.Dtype) -> bool:
    """Whether the kernel multiplies float32 activations, so that it equals a reference to 1e-5."""
    return dtype == "float32" or (dtype == "bfloat16" and isa not in native.BFLOAT16_ISAS)


def make_reference(config: BiLMConfig, weights: Weights, dtype: native.Dtype) -> ReferenceNetwork:
    """Return the network of this dtype in NumPy; of float32 for int8."""
    return ReferenceNetwork(config, RoundedWeights(weights) if dtype == "bfloat16" else weights)


def relative_error(found: FloatArray, wanted: FloatArray) -> float:
    return float(np.abs(found - wanted).mean() / (np.abs(wanted).mean() + 0.1))


# -- it computes what the reference computes -------------------------------------------------------


@every_kernel
@fuzz
@given(data=st.data())
def test_word_vectors_of_any_architecture(
    isa: str, dtype: native.Dtype, data: st.DataObject
) -> None:
    config = data.draw(architectures())
    weights = make_weights(config)
    longest = config.char_cnn.max_characters
    words = make_words(config, data.draw(st.lists(st.integers(1, longest), max_size=20)))
    found = NativeNetwork(
        config, weights, data.draw(st.integers(1, 3)), dtype=dtype, isa=isa
    ).word_vectors(*words)
    reference = make_reference(config, weights, dtype)
    wanted = reference.word_vectors(*words) if len(words[0]) else found
    assert found.shape == (len(words[0]), config.lstm.width)
    if is_exact(isa, dtype):
        np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=1e-5)
    elif len(words[0]):
        assert relative_error(found, wanted) < 0.1


@every_kernel
@fuzz
@given(data=st.data())
def test_layers_and_state_of_any_architecture(
    isa: str, dtype: native.Dtype, data: st.DataObject
) -> None:
    config = data.draw(architectures())
    weights = make_weights(config)
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=20))
    sentences = [make_inputs(config, length, seed) for seed, length in enumerate(lengths)]
    state = make_state(config, len(lengths))
    network = NativeNetwork(config, weights, data.draw(st.integers(1, 3)), dtype=dtype, isa=isa)
    found, found_state = run(network, sentences, state)
    wanted, wanted_state = run(make_reference(config, weights, dtype), sentences, state)
    pairs = [
        (np.concatenate(found, axis=1), np.concatenate(wanted, axis=1)),
        (found_state.hidden, wanted_state.hidden),
        (found_state.cell, wanted_state.cell),
    ]
    for one, other in pairs:
        if is_exact(isa, dtype):
            np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5)
        else:
            assert relative_error(one, other) < 0.1


@every_kernel
def test_state_is_carried_as_the_reference_carries_it(isa: str, dtype: native.Dtype) -> None:
    weights = make_weights(ODD)
    reference = make_reference(ODD, weights, dtype)
    networks = NativeNetwork(ODD, weights, 2, dtype=dtype, isa=isa), reference
    states = [make_state(ODD, 5)] * 2
    before = states[0].cell.copy()
    for turn in range(4):
        sentences = [make_inputs(ODD, 1 + (turn + i) % 4, seed=turn) for i in range(5)]
        results = [run(n, sentences, s) for n, s in zip(networks, states, strict=True)]
        states = [after for _, after in results]
        difference = [
            np.abs(a - b).max() for a, b in zip(results[0][0], results[1][0], strict=True)
        ]
        assert max(difference) < (1e-5 if is_exact(isa, dtype) else 0.2)
    assert (make_state(ODD, 5).cell == before).all(), "the state passed in was changed"


@pytest.mark.skipif(
    platform.machine() not in ("aarch64", "arm64"),
    reason="AArch64 only: there, all instruction sets have four lanes and fused products",
)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_all_instruction_sets_of_aarch64_give_the_same_bits(dtype: native.Dtype) -> None:
    """SMMLA, SDOT and widened products of int8 among them; 1 to 13 rows for every tile."""
    sentences = [make_inputs(ODD, length, length) for length in range(1, 14)]
    state, words = make_state(ODD, len(sentences)), make_words(ODD, [1, 2, 3, 7, 20, 50] * 3)
    results = set()
    for isa in native.instruction_sets(dtype):
        network = NativeNetwork(ODD, make_weights(ODD), 2, dtype=dtype, isa=isa)
        layers, after = run(network, sentences, state)
        arrays = [*layers, after.hidden, after.cell, network.word_vectors(*words)]
        results.add(b"".join(array.tobytes() for array in arrays))
    assert len(native.instruction_sets(dtype)) > 1
    assert len(results) == 1


@every_isa
def test_published_size_within_1e_5(isa: str) -> None:
    """The small model's shape, sentences and a word of every length."""
    config = BiLMConfig(
        char_cnn=CharCNNConfig(
            filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)), highways=1
        ),
        lstm=LSTMConfig(cells=1024, width=128),
    )
    weights = make_weights(config)
    kernel, reference = (
        NativeNetwork(config, weights, 2, isa=isa),
        ReferenceNetwork(config, weights),
    )
    words = make_words(config, list(range(1, 51)))
    np.testing.assert_allclose(
        kernel.word_vectors(*words), reference.word_vectors(*words), atol=1e-5, rtol=1e-5
    )
    sentences = [make_inputs(config, length) for length in (17, 3, 25, 8)]
    state = make_state(config, 4)
    for one, other in zip(
        run(kernel, sentences, state)[0], run(reference, sentences, state)[0], strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    ("isa", "dtype"), [kernel for kernel in KERNELS if "float32" not in kernel]
)
def test_other_dtypes_stay_close_in_direction(isa: str, dtype: native.Dtype) -> None:
    """What they lose on a network of some size: little of a vector's direction."""
    config = BiLMConfig(
        char_cnn=CharCNNConfig(filters=((1, 32), (3, 224)), highways=1),
        lstm=LSTMConfig(cells=512, width=128),
    )
    weights = make_weights(config)
    sentences = [make_inputs(config, 12, seed) for seed in range(8)]
    state = State.zeros(config, 8)
    network = NativeNetwork(config, weights, 2, dtype=dtype, isa=isa)
    found = np.concatenate(run(network, sentences, state)[0], axis=1)
    wanted = np.concatenate(run(ReferenceNetwork(config, weights), sentences, state)[0], axis=1)
    cosine = (
        (found * wanted).sum(-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(wanted, axis=-1)
    )
    assert cosine.min() > (0.995 if dtype == "int8" else 0.9998)
    assert (found[1:] != wanted[1:]).any(), "not this dtype at all"


# -- bfloat16 --------------------------------------------------------------------------------------


def test_rounding_to_bfloat16() -> None:
    """To the nearest number with 8 significant bits; ties to the even one."""
    step = 2**-7  # between neighbors of 1
    halves = np.float32([1, 1 + step / 2, 1 + step * 3 / 2, -1 - step / 2, 0, -0.0, np.inf])
    wanted = np.float32([1, 1, 1 + 2 * step, -1, 0, -0.0, np.inf])
    assert (round_to_bfloat16(halves).view(np.uint32) == wanted.view(np.uint32)).all()
    assert np.isnan(round_to_bfloat16(np.float32([np.nan]))).all()
    values = np.random.default_rng(0).normal(0, 1, 1000).astype(np.float32)
    rounded = round_to_bfloat16(values)
    assert (rounded.view(np.uint32) & 0xFFFF == 0).all()
    assert (np.abs(rounded - values) <= np.abs(values) * 2**-8).all()
    assert (round_to_bfloat16(rounded) == rounded).all()


@every_isa
def test_bfloat16_has_the_bits_of_float32_with_rounded_weights(isa: str) -> None:
    """Widening is exact, and the sums have the same order, for one row and for many."""
    weights = make_weights(ODD)
    rounded = RoundedWeights(weights)
    one = NativeNetwork(ODD, weights, 2, dtype="bfloat16", isa=isa)
    two = NativeNetwork(ODD, rounded, 2, isa=isa)
    words = make_words(ODD, [1, 5, 30, 4, 4, 4, 8])
    assert (one.word_vectors(*words) == two.word_vectors(*words)).all()
    for count in (1, 2, 9):
        sentences = [make_inputs(ODD, 6, seed) for seed in range(count)]
        state = make_state(ODD, count)
        results = [run(network, sentences, state) for network in (one, two)]
        assert all((a == b).all() for a, b in zip(results[0][0], results[1][0], strict=True))
        assert (results[0][1].cell == results[1][1].cell).all()


def test_emulated_bfloat16_rounds_the_activations() -> None:
    """One linear map without rounding errors of sums: the product of two rounded factors."""
    config = BiLMConfig(
        char_cnn=CharCNNConfig(filters=((1, 1),), embedding_dim=1, activation="relu", highways=0),
        lstm=LSTMConfig(cells=3, width=3),
    )
    weights = {name: np.zeros_like(array) for name, array in make_weights(config).items()}
    weights["characters.embedding"][:] = np.float32(1.2345678)
    weights["characters.convolution.0.weight"][:] = 1
    weights["characters.projection.weight"][:] = np.float32([[0.7654321, -3.3333, 1]])
    network = NativeNetwork(config, weights, 1, dtype="bfloat16", isa="emulated_bf16")
    found = network.word_vectors(*make_words(config, [4]))
    product = round_to_bfloat16(np.float32([1.2345678])) * round_to_bfloat16(
        weights["characters.projection.weight"][0]
    )
    assert (found == product).all()


@pytest.mark.parametrize("kind", ["float16", "float64", "strided", "mapped"])
def test_weights_may_be_any_floats(kind: str, tmp_path: Path) -> None:
    weights: Weights = {
        k: v.astype(np.float16).astype(np.float32) for k, v in make_weights(ODD).items()
    }
    if kind == "strided":
        other = {k: np.repeat(v, 2, axis=-1)[..., ::2] for k, v in weights.items()}
    elif kind == "mapped":
        other = {}
        for name, array in weights.items():
            np.save(tmp_path / f"{name}.npy", array)
            other[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    else:
        other = {k: v.astype(kind) for k, v in weights.items()}
    words = make_words(ODD, [1, 5, 30])
    sentences, state = [make_inputs(ODD, 6)], State.zeros(ODD)
    one, two = NativeNetwork(ODD, weights, 1), NativeNetwork(ODD, other, 1)
    assert (one.word_vectors(*words) == two.word_vectors(*words)).all()
    assert (run(one, sentences, state)[0][0] == run(two, sentences, state)[0][0]).all()


# -- the same bits whatever is beside --------------------------------------------------------------


@pytest.fixture(scope="module", params=KERNELS, ids="-".join)
def kernels(request: pytest.FixtureRequest) -> Iterator[list[NativeNetwork]]:
    """The same network with 1, 2, 3 and 4 threads."""
    isa, dtype = request.param
    weights = make_weights(ODD)
    yield [NativeNetwork(ODD, weights, threads, dtype=dtype, isa=isa) for threads in (1, 2, 3, 4)]


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_sentence_has_the_same_bits_in_any_company(
    kernels: list[NativeNetwork], data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=40))
    sentences = [make_inputs(ODD, length, seed) for seed, length in enumerate(lengths)]
    state = make_state(ODD, len(lengths))
    alone = [run(kernels[0], [s], state.select([i])) for i, s in enumerate(sentences)]
    order = data.draw(st.permutations(range(len(lengths))))
    for kernel in kernels:
        layers, after = run(kernel, [sentences[i] for i in order], state.select(list(order)))
        for place, i in enumerate(order):
            assert (layers[place] == alone[i][0][0]).all()
            assert (after.hidden[:, :, place] == alone[i][1].hidden[:, :, 0]).all()
            assert (after.cell[:, :, place] == alone[i][1].cell[:, :, 0]).all()


def test_many_sentences_run_in_groups_with_the_same_bits(kernels: list[NativeNetwork]) -> None:
    """More sentences than run side by side, and more words than are computed ahead."""
    rng = np.random.default_rng(0)
    sentences = [make_inputs(ODD, int(rng.integers(1, 4)), seed) for seed in range(600)]
    state = make_state(ODD, 600)
    layers, after = run(kernels[1], sentences, state)
    for i in (0, 1, 255, 256, 257, 400, 599):
        alone, end = run(kernels[0], [sentences[i]], state.select([i]))
        assert (layers[i] == alone[0]).all()
        assert (after.cell[:, :, i] == end.cell[:, :, 0]).all()


def test_a_word_has_the_same_bits_in_any_company(kernels: list[NativeNetwork]) -> None:
    rng = np.random.default_rng(0)
    ids_UC, lengths_U = make_words(ODD, rng.integers(1, 51, 1000).tolist())
    together = kernels[0].word_vectors(ids_UC, lengths_U)
    for kernel in kernels:
        assert (kernel.word_vectors(ids_UC, lengths_U) == together).all()
        order = rng.permutation(1000)
        assert (kernel.word_vectors(ids_UC[order], lengths_U[order]) == together[order]).all()
        for i in (0, 1, 510, 511, 512, 999):
            assert (
                kernel.word_vectors(ids_UC[i : i + 1], lengths_U[i : i + 1]) == together[i]
            ).all()


def test_a_document_in_pieces_has_the_same_bits(kernels: list[NativeNetwork]) -> None:
    """The forward direction, its state handed on: chunks of steps leave no trace."""
    width = ODD.lstm.width
    document, state = make_inputs(ODD, 700), make_state(ODD, 1)
    (whole,), after = run(kernels[1], [document], state)
    end = 0
    for size in (1, 255, 256, 188):
        start, end = end, end + size
        (piece,), state = run(kernels[1], [document[start:end]], state)
        assert (piece[:, :, :width] == whole[:, start:end, :width]).all()
    assert end == 700
    assert (state.cell[:, 0] == after.cell[:, 0]).all()


@every_isa
def test_a_document_equals_the_reference(isa: str) -> None:
    weights = make_weights(ODD)
    document, state = make_inputs(ODD, 2000), make_state(ODD, 1)
    (found,), _ = run(NativeNetwork(ODD, weights, 2, isa=isa), [document], state)
    (wanted,), _ = run(ReferenceNetwork(ODD, weights), [document], state)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


# -- threads, processes, memory --------------------------------------------------------------------


def test_several_threads_may_call_at_once(kernels: list[NativeNetwork]) -> None:
    kernel = kernels[1]
    sentences = [[make_inputs(ODD, 7 + i, seed=i)] for i in range(4)]
    words = [make_words(ODD, [2 + i, 9], seed=i) for i in range(4)]
    state = State.zeros(ODD)
    wanted = [
        (run(kernel, s, state)[0][0], kernel.word_vectors(*w))
        for s, w in zip(sentences, words, strict=True)
    ]
    wrong: list[int] = []

    def call(i: int) -> None:
        for _ in range(20):
            layers, vectors = run(kernel, sentences[i], state)[0][0], kernel.word_vectors(*words[i])
            if not ((layers == wanted[i][0]).all() and (vectors == wanted[i][1]).all()):
                wrong.append(i)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "the kernel hangs"
    assert not wrong


def test_other_threads_run_meanwhile() -> None:
    kernel = NativeNetwork(ODD, make_weights(ODD), 1, isa="portable")
    document, state = [make_inputs(ODD, 4000)], State.zeros(ODD)
    busy = threading.Thread(target=run, args=(kernel, document, state))
    turns = 0
    busy.start()
    while busy.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 20, "the kernel holds Python's lock"


def test_threads_sleep_when_there_is_nothing_to_do() -> None:
    kernel = NativeNetwork(ODD, make_weights(ODD), 4)
    run(kernel, [make_inputs(ODD, 5, seed) for seed in range(30)], State.zeros(ODD, 30))
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


@pytest.mark.skipif(PATIENCE > 1, reason="sanitizers allocate memory of their own")
def test_buffers_are_kept_from_call_to_call() -> None:
    """A buffer that is fresh in every call costs a page fault for every 4 kB of it."""
    resource = pytest.importorskip("resource")
    kernel = NativeNetwork(ODD, make_weights(ODD), 2)
    sentence, state, words = [make_inputs(ODD, 10)], State.zeros(ODD), make_words(ODD, [5, 9])

    def faults() -> int:
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)

    def call() -> None:
        run(kernel, sentence, state)
        kernel.word_vectors(*words)

    call()
    before = faults()
    for _ in range(20):
        call()
    assert faults() - before < 20 * 20


def in_child(compute: object) -> bytes:
    """What a forked child writes; fails if it dies or hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as file:
                file.write(compute())  # type: ignore[operator]
        finally:
            os._exit(0)
    os.close(writer)
    timer = threading.Timer(30 * PATIENCE, os.kill, (child, 9))
    timer.start()
    with os.fdopen(reader, "rb") as file:
        result = file.read()
    timer.cancel()
    os.waitpid(child, 0)
    return result


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_computes_the_same_bits(kernels: list[NativeNetwork]) -> None:
    kernel = kernels[1]
    sentences, state = [make_inputs(ODD, 9, seed) for seed in range(30)], make_state(ODD, 30)

    def compute() -> bytes:
        return b"".join(layers.tobytes() for layers in run(kernel, sentences, state)[0])

    wanted = compute()
    assert in_child(compute) == wanted
    assert in_child(lambda: in_child(compute)) == wanted, "a child of a child"
    assert compute() == wanted, "the parent after the fork"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_computes(kernels: list[NativeNetwork]) -> None:
    kernel = kernels[1]
    sentences, state = [make_inputs(ODD, 9)], State.zeros(ODD)
    document = [make_inputs(ODD, 3000)]
    wanted = run(kernel, sentences, state)[0][0].tobytes()
    busy = threading.Thread(target=run, args=(kernel, document, state))
    busy.start()
    results = [in_child(lambda: run(kernel, sentences, state)[0][0].tobytes()) for _ in range(3)]
    busy.join(60 * PATIENCE)
    assert not busy.is_alive()
    assert results == [wanted] * 3


def test_memory_does_not_grow_with_the_document() -> None:
    """100,000 steps would need 400 MB for all input products at once."""
    code = f"""
import re, resource, sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
import numpy as np
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.state import State
from elmokit.bilm.weights import expected_shapes
from elmokit.engine.batching import pack
from elmokit.engine.native import NativeNetwork

config = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 4),)), lstm=LSTMConfig(cells=256, width=3, layers=1)
)
weights = {{k: np.zeros(v, np.float32) for k, v in expected_shapes(config).items()}}
network = NativeNetwork(config, weights, 2)
words, packing = np.zeros((100_000, 3), np.float32), pack([100_000])

def peak():
    status = Path("/proc/self/status")  # Linux: getrusage begins with the memory of the parent
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1])

before = peak()
network.contextualize(words, packing, State.zeros(config))
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) < 50_000  # kB


def test_the_buffers_are_those_of_a_few_words_if_a_word_has_many_gates() -> None:
    """4,096 cells: a word has 64 kB of gates, and 64 words of them are kept, not 128."""
    config = BiLMConfig(
        char_cnn=CharCNNConfig(filters=((1, 4),)), lstm=LSTMConfig(cells=4096, width=8, layers=1)
    )
    weights = {name: np.zeros(s, np.float32) for name, s in expected_shapes(config).items()}
    network = NativeNetwork(config, weights, 1)
    assert network.buffer_bytes == 0

    def run(sentences: int, steps: int) -> int:
        words = np.zeros((sentences * steps, 8), np.float32)
        state = State.zeros(config, sentences)
        network.contextualize(words, pack([steps] * sentences), state)
        return network.buffer_bytes

    def expected(words: int, sentences: int) -> int:
        return 4 * (words * 4 * 4096 + 2 * sentences * 4096)  # gates, cells and their outputs

    small = run(48, 4)
    assert expected(64, 48) <= small < 1.05 * expected(64, 48)
    assert run(20, 8) == small, "the memory is reused"
    assert expected(100, 100) <= run(100, 2) < 1.05 * expected(100, 100), "a step is not divided"


def test_two_threads_run_a_large_model_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = make_weights(ODD)
    assert NativeNetwork(ODD, weights, 2).batch_sentences is None
    monkeypatch.setattr(native, "CACHE_BYTES", 100)
    assert NativeNetwork(ODD, weights, 2).batch_sentences == native.SENTENCES_PER_READ
    assert NativeNetwork(ODD, weights, 3).batch_sentences is None


def test_the_constants_are_those_of_the_plan() -> None:
    plan = (Path(__file__).parents[2] / "src/native/plan.h").read_text()
    assert f"kRowsPerRead = {native.SENTENCES_PER_READ};" in plan
    assert f"kCacheBytes = std::ptrdiff_t{{{native.CACHE_BYTES >> 20}}} << 20;" in plan


# -- what it refuses -------------------------------------------------------------------------------


def test_the_environment_forces_an_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = make_weights(ODD)
    monkeypatch.setenv(native.ISA_VARIABLE, "portable")
    assert NativeNetwork(ODD, weights, 1).isa == "portable"
    assert "portable" in NativeNetwork(ODD, weights, 1).name
    monkeypatch.setenv(native.ISA_VARIABLE, "avx3")
    with pytest.raises(InputError, match=f"ELMOKIT_ISA=avx3.*expected {', '.join(native.ISAS)}"):
        NativeNetwork(ODD, weights, 1)
    monkeypatch.setenv(native.ISA_VARIABLE, "")
    assert NativeNetwork(ODD, weights, 1).isa == ISAS[0]


def test_an_instruction_set_that_the_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "instruction_sets", lambda dtype: ["portable"])
    with pytest.raises(InputError, match=r"this CPU does not support avx512.*it supports portable"):
        NativeNetwork(ODD, make_weights(ODD), 1, isa="avx512")


@pytest.mark.parametrize(
    ("limit", "expected"), [("max 100000", 3), ("250000 100000", 2), ("10000 100000", 1), ("", 3)]
)
def test_threads_by_default(
    limit: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(native, "CONTAINER_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 5}, raising=False)
    assert native.usable_processors() == expected
    assert NativeNetwork(ODD, make_weights(ODD)).threads == expected


def test_wrong_arguments() -> None:
    weights = make_weights(ODD)
    with pytest.raises(InputError, match="dtype is 'int4'"):
        NativeNetwork(ODD, weights, 1, dtype="int4")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threads is 0"):
        NativeNetwork(ODD, weights, 0)


@pytest.mark.parametrize("character", [-1, 261])
def test_a_character_that_is_none(character: int) -> None:
    ids_UC, lengths_U = make_words(ODD, [3])
    ids_UC[0, 1] = character
    with pytest.raises(IndexError, match=f"ids contains {character}; expected 0 to 260"):
        NativeNetwork(ODD, make_weights(ODD), 1).word_vectors(ids_UC, lengths_U)


def test_a_packing_or_state_of_another_batch() -> None:
    network = NativeNetwork(ODD, make_weights(ODD), 1)
    words_NP = make_inputs(ODD, 7)
    with pytest.raises(ValueError, match="mirror: axis 0 has the size 6; expected 7"):
        network.contextualize(words_NP, pack([4, 2]), State.zeros(ODD, 2))
    with pytest.raises(ValueError, match="alive contains 2 where 1 is the most"):
        network.contextualize(words_NP, pack([4, 3]), State.zeros(ODD, 1))


@pytest.mark.parametrize("isa", ISAS)
def test_long_sums_keep_their_digits(isa: str) -> None:
    """A projection of thousands of cells, against the same sum in float64."""
    config = small_config(cells=4096, width=16, layers=1, skip=False, projection_clip=None)
    source = np.random.default_rng(0)
    weights = {n: np.zeros_like(a) for n, a in random_bilm(config).weights.items()}
    for side in ("forward", "backward"):
        weights[f"{side}.0.bias"] += 20  # all gates open: every cell says tanh(1)
        weights[f"{side}.0.projection.weight"] += source.uniform(0.5, 1.5, (4096, 16))
    words = np.zeros((1, 16), np.float32)
    network = NativeNetwork(config, weights, 1, isa=isa)
    layers, _ = network.contextualize(words, pack([1]), State.zeros(config))
    expected = np.tanh(1) * weights["forward.0.projection.weight"].astype(np.float64).sum(axis=0)
    assert np.abs(layers[1, 0, :16] / expected - 1).max() < 3e-7
