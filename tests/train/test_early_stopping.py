"""Early stopping: the best weights are kept, and patience ends."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.lm import Perplexity  # noqa: E402
from elmokit.train.early_stopping import EarlyStopping  # noqa: E402


def perplexity(value: float) -> Perplexity:
    return Perplexity(value, value, 1, 1, 0)


def test_the_best_is_kept() -> None:
    stopping, parameters = EarlyStopping(patience=2), torch.zeros(3)
    assert stopping.state() == ({}, {})
    for step, value in enumerate((9.0, 5.0, 6.0)):
        parameters.fill_(step)
        stopping.update(step, perplexity(value), parameters)
        assert not stopping.exhausted
    assert stopping.initial == perplexity(9.0)
    assert (stopping.best, stopping.best_step) == (perplexity(5.0), 1)
    assert stopping.best_parameters is not None
    assert stopping.best_parameters.tolist() == [1, 1, 1]

    restored = EarlyStopping(patience=2)
    restored.load(*stopping.state())
    assert restored.evaluated_step == 2 and not restored.exhausted
    restored.update(3, perplexity(5.0), parameters)
    assert restored.exhausted, "an equal perplexity is no improvement"
    assert restored.best_step == 1


def test_a_checkpoint_without_an_evaluation() -> None:
    stopping = EarlyStopping(patience=1)
    stopping.load({}, {})
    assert stopping.best is None and stopping.evaluated_step == -1
