"""Choosing held-out lines."""

from __future__ import annotations

import numpy as np
import pytest

from elmokit.train import held_out as held_out_module
from elmokit.train.held_out import HeldOutSelector


def test_no_more_than_enough_is_held_out() -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**63, 1000, np.uint64) * np.uint64(2)
    lengths = rng.integers(1, 30, 1000).astype(np.int32)

    def chosen(fraction: float, enough: int, order: np.ndarray) -> set[int]:
        held_out = HeldOutSelector(fraction, enough)
        for number, part in enumerate(np.split(order, 10)):
            held_out.add(number, keys[part], lengths[part])
        words = held_out.finalize()
        mask = held_out.is_held_out(keys)
        assert words == lengths[mask].sum()
        parts = np.split(order, 10)
        assert held_out.chunks() == [i for i in range(10) if mask[parts[i]].any()]
        return set(np.flatnonzero(mask).tolist())

    few = chosen(0.5, 300, np.arange(1000))
    assert 250 <= sum(lengths[list(few)]) <= 300
    assert few == chosen(0.5, 300, rng.permutation(1000))
    many = chosen(0.5, 10**9, np.arange(1000))
    assert few < many
    assert 450 < len(many) < 550
    assert not chosen(0.0, 300, np.arange(1000))


def test_candidates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.random.default_rng(0).integers(0, 2**63, 500, np.uint64)

    def chosen() -> list[bool]:
        held_out = HeldOutSelector(0.5, max_words=20)
        for number, part in enumerate(np.split(keys, 50)):
            held_out.add(number, part, np.ones(10, np.int32))
            assert len(held_out._words) <= held_out_module._MAX_TRACKED_LINES
        assert held_out.finalize() == 20
        return held_out.is_held_out(keys).tolist()

    expected = chosen()
    monkeypatch.setattr(held_out_module, "_MAX_TRACKED_LINES", 25)
    assert chosen() == expected
