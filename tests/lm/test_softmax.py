from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config
from tests.lm.conftest import VOCABULARY, speaking

from elmokit.bilm.model import BiLM
from elmokit.errors import WeightsError
from elmokit.lm import softmax as module
from elmokit.lm.softmax import Softmax
from elmokit.text.vocabulary import Vocabulary


def places(softmax: Softmax, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(count, 6)).astype(np.float32),
        random.integers(len(softmax), size=count),
    )


def exact(bilm: BiLM, x: np.ndarray, ids: np.ndarray) -> np.ndarray:
    weight, bias = (bilm.weights[f"softmax.{n}"].astype(float) for n in ("weight", "bias"))
    scores = x.astype(float) @ weight.T + bias
    logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return logs[np.arange(len(x)), ids]


@pytest.mark.parametrize("words_at_once", [1, 2, 7, 18, 19, 500])
@pytest.mark.parametrize("positions_at_once", [1, 4, 100])
def test_blocks_do_not_show(
    speaker: BiLM, monkeypatch: pytest.MonkeyPatch, words_at_once: int, positions_at_once: int
) -> None:
    monkeypatch.setattr(module, "WORDS_AT_ONCE", words_at_once)
    monkeypatch.setattr(module, "POSITIONS_AT_ONCE", positions_at_once)
    softmax = Softmax(speaker, threads=2)
    x, ids = places(softmax, 23)
    found = softmax.log_probability(x, ids)
    assert found.dtype == np.float64
    assert np.allclose(found, exact(speaker, x, ids), atol=2e-6)


def test_all_words_at_once_are_the_same(speaker: BiLM) -> None:
    softmax = Softmax(speaker)
    x, ids = places(softmax, 9)
    everything = softmax.log_probabilities(x)
    assert everything.shape == (9, len(VOCABULARY))
    assert np.allclose(np.exp(everything).sum(axis=1), 1, atol=1e-12)
    assert np.allclose(everything[np.arange(9), ids], softmax.log_probability(x, ids), atol=2e-6)


@pytest.mark.parametrize("words_at_once", [3, 500])
def test_large_scores_do_not_overflow(
    speaker: BiLM, monkeypatch: pytest.MonkeyPatch, words_at_once: int
) -> None:
    """exp(1000) is no number; its block may come first or last."""
    monkeypatch.setattr(module, "WORDS_AT_ONCE", words_at_once)
    loud = speaking(speaker, scale=1000.0)
    softmax = Softmax(loud)
    x, ids = places(softmax, 50)
    found = softmax.log_probability(x, ids)
    assert np.isfinite(found).all() and (found <= 0).all()
    assert np.allclose(found, exact(loud, x, ids), rtol=1e-5, atol=1e-2)


def test_threads_do_not_change_a_bit(speaker: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POSITIONS_AT_ONCE", 16)
    x, ids = places(Softmax(speaker), 400)
    one, three = (Softmax(speaker, threads).log_probability(x, ids) for threads in (1, 3))
    assert (one == three).all()


def test_half_precision_weights_are_taken(speaker: BiLM) -> None:
    half = speaking(speaker, dtype=np.float16)
    softmax = Softmax(half)
    x, ids = places(softmax, 5)
    assert np.allclose(softmax.log_probability(x, ids), exact(half, x, ids), atol=2e-6)


def test_no_places(speaker: BiLM) -> None:
    softmax = Softmax(speaker)
    x, ids = places(softmax, 0)
    assert softmax.log_probability(x, ids).shape == (0,)


def test_an_error_in_a_thread_is_not_lost(speaker: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POSITIONS_AT_ONCE", 2)
    x, ids = places(Softmax(speaker), 8)
    with pytest.raises(ValueError, match="mismatch"):
        Softmax(speaker, threads=2).log_probability(x[:, :4], ids)


def test_words_out_of_the_vocabulary_are_unknown(speaker: BiLM) -> None:
    softmax = Softmax(speaker)
    assert softmax.ids(["the", "Unheard", "<UNK>", "</S>"]).tolist() == [3, 2, 2, 1]


def test_a_model_without_softmax_says_what_to_do() -> None:
    with pytest.raises(WeightsError, match=r"no softmax.*TensorFlow checkpoint.*elmo finetune"):
        Softmax(random_bilm(small_config()))


def test_a_model_without_vocabulary_says_what_to_do(speaker: BiLM) -> None:
    with pytest.raises(WeightsError, match=r"over 19 words.*vocab\.txt"):
        Softmax(replace(speaker, vocabulary=None))


def test_a_vocabulary_without_marks_is_refused(speaker: BiLM) -> None:
    words = ["a", "b", *VOCABULARY[2:]]
    with pytest.raises(WeightsError, match=r"lacks <S>, </S>;"):
        Softmax(replace(speaker, vocabulary=Vocabulary(words)))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_too_little_memory_for_products_is_an_error() -> None:
    """OpenBLAS ends the process if it gets no memory for its buffers."""
    script = """
import resource
import numpy as np
from tests.conftest import random_bilm, small_config
from tests.lm.conftest import speaking
from elmokit.lm.softmax import Softmax

softmax = Softmax(speaking(random_bilm(small_config())), threads=1)
x_NP = np.ones((100, 6), np.float32)
softmax._blas
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size + (20 << 20), hard))
for compute in (softmax.log_probabilities, lambda x_NP: softmax.log_probability(x_NP, [0] * 100)):
    try:
        compute(x_NP)
    except MemoryError:
        print("no memory")
"""
    path = os.pathsep.join(part for part in sys.path if part)
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert result.stdout.split("\n")[:2] == ["no memory"] * 2, result.stderr
