"""Initial weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.toy import TINY, toy_corpus

from elmokit.bilm.weights import SOFTMAX, expected_shapes
from elmokit.train.initialization import initial_weights
from elmokit.train.pretraining import target_counts


def test_the_softmax_starts_with_word_frequencies(tmp_path: Path) -> None:
    corpus = toy_corpus(tmp_path)
    counts = target_counts(corpus)
    assert counts[:3].tolist() == [100, 100, 0]
    assert counts.sum() == corpus.train.tokens + corpus.train.sentences
    start = initial_weights(TINY, counts, seed=0)
    assert {name: start[name].shape for name in expected_shapes(TINY)} == expected_shapes(TINY)
    bias = start[SOFTMAX[1]].astype(np.float64)
    assert np.exp(bias)[3:] == pytest.approx(counts[3:] / counts.sum(), rel=1e-5)
    assert all(np.isfinite(array).all() for array in start.values())
    again, other = initial_weights(TINY, counts, seed=0), initial_weights(TINY, counts, seed=1)
    name = "forward.0.input.weight"
    assert (start[name] == again[name]).all()
    assert (start[name] != other[name]).any()
