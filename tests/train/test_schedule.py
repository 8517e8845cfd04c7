"""Learning-rate schedules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.train.recipe import Recipe
from elmokit.train.schedule import learning_rate


def test_rises_by_steps() -> None:
    rates = [
        learning_rate(2.0, 0, schedule="constant", step=step, warmup_steps=4) for step in range(6)
    ]
    assert rates == [0.5, 1, 1.5, 2, 2, 2]


def test_rises_in_a_twentieth_of_the_budget() -> None:
    for step, fraction, rate in ((10, 0.025, 1), (20, 0.05, 2)):
        found = learning_rate(2.0, fraction, schedule="constant", step=step, warmup_steps=10**6)
        assert found == rate


def test_falls() -> None:
    assert [learning_rate(2.0, f) for f in (0, 0.25, 0.5, 1)] == [2, 1.5, 1, 0]
    trapezoid = [
        learning_rate(2.0, f, schedule="trapezoid", decay=0.2) for f in (0, 0.5, 0.8, 0.9, 1)
    ]
    assert trapezoid == [pytest.approx(rate) for rate in (2, 2, 2, 1, 0)]
    assert [learning_rate(2.0, f, schedule="constant") for f in (0, 0.5, 1)] == [2, 2, 2]


@given(st.floats(1e-6, 10), st.floats(0, 1))
def test_linear_is_one_product(peak: float, fraction: float) -> None:
    """To the bit, since runs that were started before have to go on in the same way."""
    assert learning_rate(peak, fraction) == peak * (1 - fraction)


def test_a_recipe_sets_all_of_it() -> None:
    recipe = Recipe(rate=2.0, warm_up=8, schedule="trapezoid", decay=0.5)
    assert recipe.learning_rate(3, 0.0) == 1
    assert recipe.learning_rate(100, 0.75) == 1
