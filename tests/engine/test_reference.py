"""The reference against the plainest possible form of the network, one word and step at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import random_bilm, small_config

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.engine import reference
from elmokit.engine.batching import pack
from elmokit.engine.reference import ReferenceNetwork
from elmokit.text.characters import encode_words


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def plain_word(bilm: BiLM, ids: np.ndarray) -> np.ndarray:
    """Every window of every position, padding and all, in float64."""
    w = {name: array.astype(np.float64) for name, array in bilm.weights.items()}
    cnn = bilm.config.char_cnn
    x = w["characters.embedding"][ids]
    parts = []
    for i, (width, _) in enumerate(cnn.filters):
        weight = w[f"characters.convolution.{i}.weight"]
        windows = [np.tensordot(x[p : p + width], weight, 2) for p in range(len(x) - width + 1)]
        parts.append(np.max(windows, axis=0) + w[f"characters.convolution.{i}.bias"])
    y = np.concatenate(parts)
    y = np.maximum(y, 0) if cnn.activation == "relu" else np.tanh(y)
    for k in range(cnn.highways):
        name = f"characters.highway.{k}"
        carry = sigmoid(y @ w[f"{name}.carry.weight"] + w[f"{name}.carry.bias"])
        new = np.maximum(y @ w[f"{name}.transform.weight"] + w[f"{name}.transform.bias"], 0)
        y = carry * new + (1 - carry) * y
    if cnn.projection:
        y = y @ w["characters.projection.weight"] + w["characters.projection.bias"]
    return y


def plain_layers(bilm: BiLM, words: np.ndarray) -> np.ndarray:
    """One sentence (T, P) from a zero state, both directions, in float64."""
    w = {name: array.astype(np.float64) for name, array in bilm.weights.items()}
    lstm = bilm.config.lstm
    layers = [np.concatenate([words, words], axis=1)]
    sides = {"forward": words, "backward": words[::-1]}
    for depth in range(lstm.layers):
        for side, x in sides.items():
            name = f"{side}.{depth}"
            h, c, out = np.zeros(lstm.width), np.zeros(lstm.cells), []
            for step in x:
                gates = (
                    step @ w[f"{name}.input.weight"]
                    + h @ w[f"{name}.recurrent.weight"]
                    + w[f"{name}.bias"]
                )
                i, j, f, o = np.split(gates, 4)
                c = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j)
                if lstm.cell_clip:
                    c = np.clip(c, -lstm.cell_clip, lstm.cell_clip)
                h = sigmoid(o) * np.tanh(c)
                if lstm.projection:
                    h = h @ w[f"{name}.projection.weight"]
                    if lstm.projection_clip:
                        h = np.clip(h, -lstm.projection_clip, lstm.projection_clip)
                out.append(h)
            sides[side] = np.array(out) + (x if lstm.skip and depth else 0)
        layers.append(np.concatenate([sides["forward"], sides["backward"][::-1]], axis=1))
    return np.array(layers)


options = st.fixed_dictionaries(
    {},
    optional={
        "activation": st.just("tanh"),
        "highways": st.integers(0, 3),
        "layers": st.integers(1, 3),
        "skip": st.just(False),
        "cell_clip": st.sampled_from([None, 0.3]),
        "projection_clip": st.sampled_from([None, 0.3]),
        "filters": st.sampled_from([((1, 3),), ((20, 2), (3, 5)), ((7, 4),)]),
    },
)


@given(options, st.lists(st.text(max_size=30), min_size=1, max_size=6, unique=True))
def test_word_vectors(changes: dict, words: list[str]) -> None:
    bilm = random_bilm(small_config(**changes))
    ids, lengths = encode_words(words, 20)
    ours = ReferenceNetwork(bilm.config, bilm.weights).word_vectors(ids, lengths)
    for vector, row in zip(ours, ids, strict=True):
        assert np.allclose(vector, plain_word(bilm, row), atol=1e-5)


@given(options, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 99))
def test_layers(changes: dict, lengths: list[int], seed: int) -> None:
    bilm = random_bilm(small_config(**changes), seed)
    random = np.random.default_rng(seed)
    sentences = [random.normal(size=(n, 6)).astype(np.float32) for n in lengths]
    packing = pack(lengths)
    packed = np.concatenate(sentences)[packing.source]
    state = State.zeros(bilm.config, len(lengths))
    network = ReferenceNetwork(bilm.config, bilm.weights)
    layers, _ = network.contextualize(packed, packing, state)
    ours = np.split(packing.unpack(layers), np.cumsum(lengths)[:-1], axis=1)
    for mine, sentence in zip(ours, sentences, strict=True):
        assert np.allclose(mine, plain_layers(bilm, sentence), atol=1e-5)
    assert not state.hidden.any() and not state.cell.any(), "the state given was changed"


def test_no_projections() -> None:
    """Where the sizes fit, both projections can be left out."""
    from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig

    config = BiLMConfig(
        char_cnn=CharCNNConfig(filters=((2, 4), (3, 5)), projection=False, embedding_dim=3),
        lstm=LSTMConfig(cells=9, width=9, projection=False, projection_clip=0.01),
    )
    bilm = random_bilm(config)
    network = ReferenceNetwork(config, bilm.weights)
    words = network.word_vectors(*encode_words(["one", "two"], 50))
    assert np.allclose(words[0], plain_word(bilm, encode_words(["one"], 50)[0][0]), atol=1e-5)
    layers, _ = network.contextualize(words, pack([2]), State.zeros(config))
    assert np.allclose(layers, plain_layers(bilm, words), atol=1e-5)
    assert np.abs(layers[1]).max() > 0.01, "without projection there is nothing to clip"


def test_reading_on_from_a_state(bilm: BiLM) -> None:
    """Two halves, the second from the state after the first, are the whole; forward only."""
    x = np.random.default_rng(1).normal(size=(10, 6)).astype(np.float32)
    network = ReferenceNetwork(bilm.config, bilm.weights)
    whole, after = network.contextualize(x, pack([10]), State.zeros(bilm.config))
    _, middle = network.contextualize(x[:6], pack([6]), State.zeros(bilm.config))
    rest, last = network.contextualize(x[6:], pack([4]), middle)
    assert np.allclose(rest[:, :, :6], whole[:, 6:, :6], atol=1e-6)
    assert np.allclose(last.cell[:, 0], after.cell[:, 0], atol=1e-6)


def test_bounds_on_memory_do_not_show(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [9, 4, 4, 1]
    packing = pack(lengths)
    words = [f"word{'x' * i}" for i in range(18)]
    network = ReferenceNetwork(bilm.config, bilm.weights)

    def run() -> list[np.ndarray]:
        vectors = network.word_vectors(*encode_words(words, 20))
        layers, state = network.contextualize(vectors, packing, State.zeros(bilm.config, 4))
        return [vectors, layers, state.hidden, state.cell]

    before = run()
    monkeypatch.setattr(reference, "WINDOWS_AT_ONCE", 1)
    monkeypatch.setattr(reference, "GATES_AT_ONCE", 1)
    for a, b in zip(before, run(), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_the_number_of_threads(bilm: BiLM) -> None:
    from threadpoolctl import ThreadpoolController

    def blas_threads() -> list[int]:
        pools = ThreadpoolController().select(user_api="blas").info()
        return [pool["num_threads"] for pool in pools]

    before = blas_threads()
    network = ReferenceNetwork(bilm.config, bilm.weights, threads=1)
    seen: list[list[int]] = []
    inner = network._convolve

    def spy(*args: object) -> np.ndarray:
        seen.append(blas_threads())
        return inner(*args)  # type: ignore[arg-type]

    network._convolve = spy  # type: ignore[method-assign]
    network.word_vectors(*encode_words(["a"], 20))
    assert seen and all(count == 1 for counts in seen for count in counts)
    assert blas_threads() == before
