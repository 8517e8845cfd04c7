from __future__ import annotations

from math import comb

import numpy as np
import pytest

from elmokit.probe.change.distances import measure_distances, permuted_groups


def cosine_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def studentized(x: np.ndarray, units: np.ndarray, first: np.ndarray) -> float:
    """PRT by its noise, word for word: the jackknife variance of both means, leaving out units."""
    means, noise = [], 0.0
    for group in (first, ~first):
        members = np.flatnonzero(group)
        mean = x[np.isin(units, members)].mean(0)
        left_out = [x[np.isin(units, members) & (units != unit)].mean(0) for unit in members]
        k = len(members)
        noise += (k - 1) / k * sum(((each - mean) ** 2).sum() for each in left_out) / (mean @ mean)
        means.append(mean)
    return cosine_distance(*means) / noise


def test_the_distances_are_what_they_say() -> None:
    x = np.random.default_rng(0).normal(size=(9, 5)) + 1
    then, now = x[:4], x[4:]
    found = measure_distances(x.astype(np.float32), 4)
    apd = np.mean([cosine_distance(a, b) for a in then for b in now])
    assert found.apd == pytest.approx(apd, abs=1e-5)
    for half, value in ((then, found.within_then), (now, found.within_now)):
        pairs = [cosine_distance(a, b) for i, a in enumerate(half) for b in half[:i]]
        assert value == pytest.approx(np.mean(pairs), abs=1e-5)
    within = (found.within_then + found.within_now) / 2
    assert found.excess == pytest.approx(apd - within, abs=1e-5)
    assert found.prt == pytest.approx(cosine_distance(then.mean(0), now.mean(0)), abs=1e-5)
    assert found.prt_p is None and found.apd_by_chance is None, "without units, no test"


def test_the_test_is_what_it_says() -> None:
    x = np.random.default_rng(2).normal(size=(14, 6)) + 0.5
    units = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6, 6, 7])
    groups = permuted_groups(3, 5, 1000, np.random.default_rng(0))
    found = measure_distances(x, 6, units, groups)
    actual = studentized(x, units, np.arange(8) < 3)
    others = np.array([studentized(x, units, group) for group in groups])
    assert found.prt_p == pytest.approx((1 + (others >= actual).sum()) / comb(8, 3), abs=1e-6)
    assert found.prt_by_chance == pytest.approx(others.mean() * found.prt / actual, abs=1e-5)


def test_a_change_is_found() -> None:
    random = np.random.default_rng(0)
    units = np.repeat(np.arange(40), 3)
    x = random.normal(size=(120, 8)) + random.normal(size=(40, 8))[units] + 2
    x[60:] += np.eye(8)[0] * 3
    found = measure_distances(x, 60, units, permuted_groups(20, 20, 500, random))
    assert found.prt_p == found.apd_p == pytest.approx(1 / 501, abs=1e-6)
    assert found.prt_by_chance is not None and found.prt > 3 * found.prt_by_chance


def test_equal_uses_are_no_change() -> None:
    x = np.full((10, 4), 0.3, np.float32)
    found = measure_distances(
        x, 5, np.arange(10), permuted_groups(5, 5, 20, np.random.default_rng(0))
    )
    assert (found.apd, found.prt, found.excess, found.prt_by_chance) == (0, 0, 0, 0)
    assert (found.apd_p, found.prt_p) == (1, 1)


def test_texts_of_one_form_each_are_a_change() -> None:
    x = np.repeat(np.eye(2), 5, axis=0)
    found = measure_distances(
        x, 5, np.arange(10), permuted_groups(5, 5, 999, np.random.default_rng(0))
    )
    # Of all 252 groups, only the actual ones and the same exchanged are that far apart.
    assert found.prt_p == pytest.approx(2 / 252, abs=1e-6) and found.prt == 1


def test_one_document_is_no_test() -> None:
    x = np.random.default_rng(0).normal(size=(6, 4))
    groups = permuted_groups(1, 3, 10, np.random.default_rng(0))
    found = measure_distances(x, 3, np.array([0, 0, 0, 1, 2, 3]), groups)
    assert found.prt > 0 and found.prt_p is None and found.apd_p is None


def test_random_groups_have_the_same_sizes() -> None:
    groups = permuted_groups(6, 9, 400, np.random.default_rng(0))
    assert groups.shape == (400, 15) and (groups.sum(axis=1) == 6).all()
    assert np.all(np.abs(groups.mean(axis=0) - 6 / 15) < 0.1)
    every = permuted_groups(2, 3, 400, np.random.default_rng(0))
    assert len(np.unique(every, axis=0)) == len(every) == comb(5, 2) - 1
    assert not (every == (np.arange(5) < 2)).all(axis=1).any(), "the actual groups come on top"
