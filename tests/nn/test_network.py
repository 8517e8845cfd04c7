"""The network in PyTorch: layer by layer the engine's, and its gradients are right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.conftest import GOLDEN, small_config
from tests.nn.known_words import known_words

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import formats  # noqa: E402
from elmokit.bilm.model import BiLM  # noqa: E402
from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.bilm.state import State  # noqa: E402
from elmokit.bilm.weights import SOFTMAX, expected_shapes  # noqa: E402
from elmokit.engine.reference import ReferenceNetwork  # noqa: E402
from elmokit.engine.runner import Runner  # noqa: E402
from elmokit.errors import InputError  # noqa: E402
from elmokit.nn import Batcher, BiLMModule, TensorState, network  # noqa: E402

MODELS = sorted(path.name for path in (GOLDEN / "models").iterdir() if path.is_dir())
BATCHES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
SENTENCES = [["the", "bank"], [], ["one", "two", "three", "the", "ü" * 30], ["</S>", ""]]


def engine(bilm: BiLM, sentences: list[list[str]], state: State) -> tuple[np.ndarray, State]:
    """All layers of the reference, the sentences one after another, and the state after."""
    runner = Runner(bilm, ReferenceNetwork(bilm.config, bilm.weights), cache_bytes=0)
    found, after = runner.run(sentences, state, lambda layers: layers)
    return np.concatenate(found, axis=1), after


def module(bilm: BiLM, sentences: list[list[str]], state: State) -> tuple[np.ndarray, TensorState]:
    batch = Batcher(bilm).from_words(sentences)
    with torch.no_grad():
        layers, after = BiLMModule.from_bilm(bilm)(batch, TensorState.from_state(state))
    padded = batch.pad(layers)
    return padded[:, batch.mask()].numpy(), after


def some_state(bilm: BiLM, rows: int) -> State:
    source = np.random.default_rng(5)
    zeros = State.zeros(bilm.config, rows)
    hidden, cell = (
        source.normal(scale=0.5, size=part.shape).astype(np.float32)
        for part in (zeros.hidden, zeros.cell)
    )
    return State(hidden, cell)


def largest(ours: np.ndarray, theirs: np.ndarray) -> float:
    assert ours.shape == theirs.shape
    return float((np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max(initial=0))


@pytest.mark.parametrize("name", [*MODELS, "known words"])
def test_every_architecture_equals_the_reference(name: str) -> None:
    bilm = known_words() if name == "known words" else formats.read(GOLDEN / "models" / name)
    for sentences in (SENTENCES, BATCHES[1], [["a"], ["b", "a"]]):
        state = some_state(bilm, len(sentences))
        expected, expected_after = engine(bilm, sentences, state)
        found, after = module(bilm, sentences, state)
        assert largest(found, expected) < 1e-5
        assert largest(after.hidden.numpy(), expected_after.hidden) < 1e-5
        assert largest(after.cell.numpy(), expected_after.cell) < 1e-5


def test_known_words_count() -> None:
    """Without the embedding of known words, the vectors are others."""
    bilm = known_words()
    silent = {**bilm.weights, "words.embedding": 0 * bilm.weights["words.embedding"]}
    other = BiLM(bilm.config, silent, alphabet=bilm.alphabet, lexicon=bilm.lexicon)
    with_them, without = (module(m, [["the"]], State.zeros(bilm.config))[0] for m in (bilm, other))
    assert not np.allclose(with_them[0], without[0], atol=1e-2)


def test_the_backward_model_does_not_see_what_comes_before() -> None:
    bilm = random_bilm(small_config())
    state = State.zeros(bilm.config)
    width = bilm.config.lstm.width
    one, _ = module(bilm, [["a", "river", "bank"]], state)
    two, _ = module(bilm, [["the", "river", "bank"]], state)
    assert np.array_equal(one[:, 1:, width:], two[:, 1:, width:])
    assert not np.array_equal(one[1:, 1:, :width], two[1:, 1:, :width])


def test_an_empty_batch() -> None:
    bilm = random_bilm(small_config())
    batch = Batcher(bilm).from_words([])
    layers, after = BiLMModule.from_bilm(bilm)(batch, TensorState.zeros(bilm.config, 0))
    assert batch.pad(layers).shape == (3, 0, 0, 12) and after.rows == 0


def test_a_state_of_other_rows_is_refused() -> None:
    bilm = random_bilm(small_config())
    batch = Batcher(bilm).from_words([["a"], ["b"]])
    with pytest.raises(InputError, match="hidden has the shape"):
        BiLMModule.from_bilm(bilm)(batch, TensorState.zeros(bilm.config, 3))


# -- gradients -----------------------------------------------------------------------------------

TINY = {"filters": ((1, 2), (2, 3)), "embedding_dim": 2, "max_characters": 7}
TINY |= {"cells": 4, "width": 3}


@pytest.mark.parametrize(
    "changes",
    [
        {"cell_clip": 0.2, "projection_clip": 0.15},
        {"cell_clip": None, "projection_clip": None, "activation": "tanh", "skip": False},
        {"cells": 3, "projection": False, "cell_clip": 0.2, "highways": 2, "layers": 1},
    ],
    ids=["clips", "no clips", "no projection"],
)
def test_gradients(changes: dict[str, object]) -> None:
    """All weights and the start state, against differences in float64, clipped values too."""
    bilm = random_bilm(small_config(**(TINY | changes)), seed=1)
    batch = Batcher(bilm).from_words([["ab", "c"], ["abcdefgh", "ab", "d"], []])
    names = list(expected_shapes(bilm.config))
    weights = [
        torch.tensor(bilm.weights[name], dtype=torch.float64, requires_grad=True) for name in names
    ]
    start = [
        torch.tensor(part, dtype=torch.float64, requires_grad=True)
        for part in (some_state(bilm, 3).hidden, some_state(bilm, 3).cell)
    ]

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = TensorState(*tensors[-2:])
        layers, after = network.compute_layers(
            bilm.config, dict(zip(names, tensors[:-2], strict=True)), batch, state
        )
        return layers, *after

    _, hidden, cell = run(*weights, *start)
    lstm = bilm.config.lstm
    for clip, values in ((lstm.cell_clip, cell), (lstm.projection_clip, hidden)):
        if clip is not None and (lstm.projection or values is cell):
            assert 0.05 < (values.abs() == clip).double().mean() < 0.9
    assert torch.autograd.gradcheck(run, [*weights, *start], fast_mode=True)


def test_no_gradient_passes_a_clipped_value() -> None:
    """One step, cell far beyond its clip: the input gate cannot move it."""
    bilm = random_bilm(small_config(layers=1, cell_clip=0.01, projection_clip=None))
    batch = Batcher(bilm).from_words([["a"]])
    learner = BiLMModule.from_bilm(bilm)
    start = learner.zero_state(1)
    _, after = learner(batch, TensorState(start.hidden, start.cell + 5))
    assert (after.cell.abs() == after.cell.abs().max()).all()
    after.cell.sum().backward()
    gradient = learner.tensors()["forward.0.input.weight"].grad
    assert gradient is not None and (gradient == 0).all()


# -- from a model and back -------------------------------------------------------------------------


def test_weights_go_in_and_come_out_as_they_were() -> None:
    bilm = formats.read(GOLDEN / "models" / "odd")
    assert BiLMModule.from_bilm(bilm).to_bilm(bilm).fingerprint == bilm.fingerprint


def test_what_is_not_learned_stays() -> None:
    bilm = random_bilm(small_config())
    softmax = dict(zip(SOFTMAX, (np.ones((4, 6), np.float32), np.ones(4, np.float32)), strict=True))
    settled = State.zeros(bilm.config)
    whole = BiLM(bilm.config, {**bilm.weights, **softmax}, settled=settled)
    learner = BiLMModule.from_bilm(whole)
    with torch.no_grad():
        learner.tensors()["forward.0.bias"].add_(1)
    found = learner.to_bilm(like=whole)
    assert np.array_equal(found.weights["softmax.weight"], softmax["softmax.weight"])
    assert np.allclose(found.weights["forward.0.bias"], bilm.weights["forward.0.bias"] + 1)
    assert found.settled is None
    assert np.array_equal(
        bilm.weights["forward.0.bias"], random_bilm(small_config()).weights["forward.0.bias"]
    )


def test_the_state_dict_round_trips() -> None:
    one, other = (BiLMModule.from_bilm(random_bilm(small_config(), seed)) for seed in (0, 1))
    other.load_state_dict(one.state_dict())
    for name, array in one.to_weights().items():
        assert np.array_equal(array, other.to_weights()[name])
