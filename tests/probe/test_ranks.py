from __future__ import annotations

import pytest

from elmokit.probe.ranks import area_under_curve, ranks, spearman, spearman_error


def test_equal_numbers_share_their_ranks() -> None:
    assert ranks([3.0, 1.0, 3.0, 0.5]).tolist() == [3.5, 2.0, 3.5, 1.0]


def test_spearman() -> None:
    assert spearman([1, 2, 3, 4], [10, 200, 201, 9999]) == pytest.approx(1.0)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    # By hand: ranks 1 2 3 4 5 and 2 1 4 3 5, 1 - 6 · 4 / (5 · 24).
    assert spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx(0.8)
    # With ties it is Pearson's of the mean ranks: 1.5 1.5 3 and 1 2 3.
    assert spearman([0, 0, 1], [1, 2, 3]) == pytest.approx(1.5 / (1.5 * 2) ** 0.5)
    assert spearman([1, 1, 1], [1, 2, 3]) is None


def test_its_error() -> None:
    assert spearman_error(0.0, 103) == pytest.approx(0.1)
    assert spearman_error(1.0, 103) == 0.0 and spearman_error(0.5, 3) is None


def test_area_under_curve() -> None:
    assert area_under_curve([0.1, 0.2, 0.8, 0.9], [False, False, True, True]) == 1.0
    assert area_under_curve([0.1, 0.8, 0.2, 0.9], [False, False, True, True]) == 0.75
    assert area_under_curve([1, 1, 1], [True, False, True]) == 0.5
    assert area_under_curve([1, 2], [True, True]) is None
