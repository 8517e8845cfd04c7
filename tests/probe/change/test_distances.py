from __future__ import annotations

import numpy as np
import pytest

from elmokit.probe.change.distances import measure_distances, permuted_groups


def cosine_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_the_distances_are_what_they_say() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(9, 5)) + 1
    then, now = x[:4], x[4:]
    groups = np.array([[True] * 4 + [False] * 5, [False] * 5 + [True] * 4])
    found = measure_distances(x.astype(np.float32), 4, groups)
    apd = np.mean([cosine_distance(a, b) for a in then for b in now])
    assert found.apd == pytest.approx(apd, abs=1e-5)
    for half, value in ((then, found.within_then), (now, found.within_now)):
        pairs = [cosine_distance(a, b) for i, a in enumerate(half) for b in half[:i]]
        assert value == pytest.approx(np.mean(pairs), abs=1e-5)
    within = (found.within_then + found.within_now) / 2
    assert found.excess == pytest.approx(apd - within, abs=1e-5)
    assert found.prt == pytest.approx(cosine_distance(then.mean(0), now.mean(0)), abs=1e-5)
    other = np.mean([cosine_distance(a, b) for a in x[5:] for b in x[:5]])
    assert found.apd_by_chance == pytest.approx((apd + other) / 2, abs=1e-5)
    assert found.apd_p == pytest.approx((1 + 1 + (other >= apd)) / 3, abs=1e-4)
    moved = cosine_distance(x[5:].mean(0), x[:5].mean(0))
    assert found.prt_by_chance == pytest.approx((found.prt + moved) / 2, abs=1e-5)


def test_equal_uses_are_no_change() -> None:
    x = np.ones((10, 4), np.float32)
    groups = np.random.default_rng(0).permuted(np.tile(np.arange(10) < 5, (20, 1)), axis=1)
    found = measure_distances(x, 5, groups)
    assert (found.apd, found.prt, found.excess) == (0, 0, 0)
    assert (found.apd_p, found.prt_p) == (1, 1)


def test_random_groups_have_the_same_sizes() -> None:
    groups = permuted_groups(3, 5, 400, np.random.default_rng(0))
    assert groups.shape == (400, 8) and (groups.sum(axis=1) == 3).all()
    assert np.all(np.abs(groups.mean(axis=0) - 3 / 8) < 0.1)
