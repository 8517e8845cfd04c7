"""Recipes: what they refuse, and the learning rate they make."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError, InputError
from elmokit.train.recipe import RECIPES, Recipe, rate_at, recipe_named, shards_for


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "words"}, "text is 'words'; expected one of sentences, stream"),
        ({"optimizer": "sgd"}, "expected one of adam, adagrad"),
        ({"schedule": "cosine"}, "expected one of linear, trapezoid, constant"),
        ({"sampler": "none"}, "expected one of poisson, log-uniform, full"),
        ({"batch": 0}, "batch is 0; expected a whole number from 1 up"),
        ({"warm_up": -1}, "from 0 up"),
        ({"negatives": 2.5}, "negatives is 2.5"),
        ({"seed": True}, "seed is True"),
        ({"rate": 0}, "rate is 0; expected a number above 0"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"clip": "1"}, "clip is '1'"),
        ({"decay": 1.5}, "at most 1"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"text": "stream", "lanes": 9}, "9 lanes cannot be divided into 2 equal shards"),
    ],
)
def test_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe(**changes)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", RECIPES)
def test_to_json_and_back(name: str) -> None:
    recipe = recipe_named(name).replace(seed=7, rate=None)
    assert recipe.seed == 7
    assert recipe.rate == RECIPES[name].rate
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match="unknown momentum; expected some of text, batch"):
        Recipe.from_dict({"momentum": 0.9})
    with pytest.raises(InputError, match="expected one of recommended, bilm-tf"):
        recipe_named("best")


def test_bilm_tf_is_as_published() -> None:
    recipe = RECIPES["bilm-tf"]
    assert (recipe.lanes, recipe.window, recipe.negatives) == (128, 20, 8192)
    assert (recipe.optimizer, recipe.rate, recipe.clip, recipe.dropout) == ("adagrad", 0.2, 10, 0.1)


# -- the rate ------------------------------------------------------------------------------------


def test_rate_rises_by_steps() -> None:
    recipe = Recipe(rate=2.0, warm_up=4, schedule="constant")
    assert [rate_at(recipe, step, 0) for step in range(6)] == [0.5, 1, 1.5, 2, 2, 2]


def test_rate_rises_in_a_twentieth_of_the_budget() -> None:
    recipe = Recipe(rate=2.0, warm_up=10**6, schedule="constant")
    assert rate_at(recipe, 10, 0.025) == 1
    assert rate_at(recipe, 20, 0.05) == 2


def test_rate_falls() -> None:
    linear = Recipe(rate=2.0, warm_up=0)
    assert [rate_at(linear, 9, f) for f in (0, 0.25, 0.5, 1)] == [2, 1.5, 1, 0]
    trapezoid = linear.replace(schedule="trapezoid", decay=0.2)
    assert [rate_at(trapezoid, 9, f) for f in (0, 0.5, 0.8, 0.9, 1)] == [
        pytest.approx(rate) for rate in (2, 2, 2, 1, 0)
    ]
    constant = linear.replace(schedule="constant")
    assert [rate_at(constant, 9, f) for f in (0, 0.5, 1)] == [2, 2, 2]


# -- shards --------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(RECIPES)),
    st.integers(1, 300),
    st.integers(1, 5),
    st.sampled_from([1, 6, 20, 128]),
)
def test_shards_can_be_divided(name: str, processors: int, processes: int, lanes: int) -> None:
    recipe = RECIPES[name].replace(shards=1, lanes=lanes)
    shards = shards_for(recipe, processors, processes)
    assert shards % processes == 0
    assert shards <= max(processors, processes)
    if shards > processes:
        recipe.replace(shards=shards)  # raises if lanes do not come out even
        assert recipe.batch // shards >= 256


@pytest.mark.parametrize(
    ("name", "processors", "processes", "shards"),
    [
        ("recommended", 2, 1, 2),
        ("recommended", 1, 2, 2),
        ("recommended", 7, 2, 6),
        ("recommended", 64, 1, 17),
        ("bilm-tf", 6, 1, 4),
        ("bilm-tf", 2, 1, 2),
    ],
)
def test_shards_by_processors(name: str, processors: int, processes: int, shards: int) -> None:
    assert shards_for(RECIPES[name], processors, processes) == shards
