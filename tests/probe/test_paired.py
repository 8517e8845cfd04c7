from __future__ import annotations

import numpy as np
import pytest

from elmokit.probe.paired import compare_paired


def test_against_the_usual_formula() -> None:
    source = np.random.default_rng(0)
    first, second = source.random(400) < 0.8, source.random(400) < 0.7
    found = compare_paired(first, second)
    apart = first.astype(float) - second
    assert found.difference == pytest.approx(apart.mean())
    assert found.standard_error == pytest.approx(apart.std() / 400**0.5)
    assert found.only_first == (apart == 1).sum() and found.only_second == (apart == -1).sum()


def test_the_same_answers() -> None:
    right = np.array([True, False])
    assert (
        compare_paired(right, right).difference
        == compare_paired(right, right).standard_error
        == 0.0
    )
