"""The network in PyTorch against the reference, on torch's CPU device."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDEN, random_bilm, small_config
from tests.engine.test_native import (
    architectures,
    make_inputs,
    make_state,
    make_weights,
    make_words,
)
from tests.engine.test_native import run as run_network

from elmokit import Elmo
from elmokit.bilm.model import BiLM
from elmokit.engine import accelerated
from elmokit.engine.accelerated import TorchNetwork, available_devices
from elmokit.engine.reference import ReferenceNetwork
from elmokit.errors import ElmoError, InputError, InputTypeError, MissingExtra

torch: Any = pytest.importorskip("torch", reason="the network for accelerators needs torch")

MODELS = sorted(
    [path for path in (GOLDEN / "models").iterdir() if path.is_dir()]
    + [path / "native" for path in (GOLDEN / "many_langs" / "models").iterdir()]
)
BATCHES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The workers of pytest-xdist share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def differ(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference: absolute below 1, relative above."""
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    return float((np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max(initial=0))


@pytest.mark.filterwarnings("ignore:the model reads the first")
@pytest.mark.parametrize("model", MODELS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_golden_model_in_every_state(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOKIT_ENGINE", "reference")
    for state in ("settled", "zero", "carry"):
        ours, reference = (
            Elmo.load(model, state=state, device="cpu-torch"),
            Elmo.load(model, state=state),
        )
        assert ours.engine == "torch (cpu, float32)" and reference.engine == "reference"
        for batch in BATCHES:
            pairs = zip(ours.embed(batch, "all"), reference.embed(batch, "all"), strict=True)
            assert max(differ(a, b) for a, b in pairs) < TOLERANCE
        if state == "carry":
            assert differ(ours.carried.hidden, reference.carried.hidden) < TOLERANCE
            assert differ(ours.carried.cell, reference.carried.cell) < TOLERANCE


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(config=architectures(), lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_any_architecture(config: Any, lengths: list[int]) -> None:
    weights = make_weights(config)
    ours, reference = (
        TorchNetwork(config, weights, "cpu-torch"),
        ReferenceNetwork(config, weights),
    )
    longest = config.char_cnn.max_characters
    ids_UC, lengths_U = make_words(config, [min(n + 1, longest) for n in lengths])
    expected = reference.word_vectors(ids_UC, lengths_U)
    assert differ(ours.word_vectors(ids_UC, lengths_U), expected) < TOLERANCE
    inputs_NP = make_inputs(config, sum(lengths))
    sentences = np.split(inputs_NP, np.cumsum(lengths)[:-1])
    state = make_state(config, len(lengths))
    (layers, after), (expected_layers, expected_after) = (
        run_network(network, sentences, state)  # type: ignore[arg-type]
        for network in (ours, reference)
    )
    for a, b in zip(layers, expected_layers, strict=True):
        assert differ(a, b) < TOLERANCE
    assert differ(after.hidden, expected_after.hidden) < TOLERANCE
    assert differ(after.cell, expected_after.cell) < TOLERANCE


def test_large_batches_in_pieces(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a graphics processor gets: more words per batch, computed in several pieces."""
    monkeypatch.setattr(accelerated, "GATES_AT_ONCE", 500)
    monkeypatch.setattr(accelerated, "SCORES_AT_ONCE", 500)
    rng = np.random.default_rng(0)
    sentences = [[f"w{i}" for i in rng.integers(0, 900, n)] for n in rng.integers(0, 40, 300)]
    expected = Elmo(bilm).embed(sentences, "all")
    ours = Elmo(bilm, device="cpu-torch")
    monkeypatch.setattr(ours._runner._network, "batch_words", 16384)
    assert ours._runner.batch_words == 16384
    first = ours.embed(sentences, "all")
    assert max(differ(a, b) for a, b in zip(first, expected, strict=True)) < TOLERANCE
    for a, b in zip(ours.embed(sentences, "all"), first, strict=True):
        np.testing.assert_array_equal(a, b)  # the same input again
    assert ours.embed([]) == [] and ours.embed([[]])[0].shape == (0, ours.dim)


def test_the_builtin_model_and_its_pickle() -> None:
    text = "She went to the bank ."
    ours = Elmo.load(device="cpu-torch", threads=1)
    assert differ(ours.embed(text), Elmo.load().embed(text)) < TOLERANCE
    again = pickle.loads(pickle.dumps(ours))
    assert again.device == "cpu-torch" and again.engine == ours.engine
    np.testing.assert_array_equal(again.embed(text), ours.embed(text))


def test_devices_that_are_not_there(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_devices()[:2] == ["cpu", "cpu-torch"]
    with pytest.raises(InputError, match=r"device 'tpu' is not a device .*; available: cpu, cpu-t"):
        Elmo(bilm, device="tpu")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for device in ("cuda", "cuda:7", "mps"):
        with pytest.raises(InputError, match=r"is not available here; available: cpu, cpu-torch$"):
            Elmo(bilm, device=device)
    with pytest.raises(InputError, match=r"dtype='int8' needs the compiled kernel"):
        Elmo(bilm, device="cpu-torch", dtype="int8")
    with pytest.raises(InputTypeError, match="device is None"):
        Elmo(bilm, device=None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", None)
    assert available_devices() == ["cpu"]
    with pytest.raises(MissingExtra, match=r"'cuda' need torch.*pip install 'elmokit\[train\]'"):
        Elmo(bilm, device="cuda")


def test_threads_and_settings_of_the_caller(bilm: BiLM) -> None:
    elmo = Elmo(bilm, device="cpu-torch", threads=1)
    expected = elmo.embed([["a", "b"], ["c"]])
    results: list[Any] = []
    torch.set_num_threads(2)
    workers = [
        threading.Thread(target=lambda: results.append(elmo.embed([["a", "b"], ["c"]])))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(results) == 4 and torch.is_grad_enabled()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_a_forked_process(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    elmo = Elmo(bilm, device="cpu-torch", threads=2)
    words = [["a", "b", "c"] * 50] * 20
    expected = elmo.embed(words)  # starts the threads, which a fork does not copy
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def embed_in_child() -> None:
        sender.send(elmo.embed(words))

    child = context.Process(target=embed_in_child)
    child.start()
    assert receiver.poll(60), "the child hangs"
    for a, b in zip(receiver.recv(), expected, strict=True):
        assert differ(a, b) < TOLERANCE
    child.join()
    network = elmo._runner._network
    monkeypatch.setattr(network, "_process", -1)
    monkeypatch.setattr(network, "_on_cpu", False)
    with pytest.raises(ElmoError, match="a forked process cannot use cpu-torch; load the model"):
        elmo.embed([["new"]])


def test_the_settled_state_is_the_same_on_every_device() -> None:
    """Bit for bit, since some networks amplify what differs at the start of a sentence."""
    bilm = random_bilm(small_config(layers=3, skip=False))
    ours, reference = Elmo(bilm, device="cpu-torch"), Elmo(bilm)
    np.testing.assert_array_equal(ours.settled.cell, reference.settled.cell)
    for elmo in (ours, reference):
        elmo.settle(["Some other text .", "And more ."])
    np.testing.assert_array_equal(ours.settled.hidden, reference.settled.hidden)
