"""Recipes: what they refuse, and how they are stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError, InputError
from elmokit.train.recipe import RECIPES, Recipe, count_shards, get_recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "words"}, "text is 'words'; expected one of sentences, passages, stream"),
        ({"optimizer": "sgd"}, "expected one of adam, adagrad, muon"),
        ({"schedule": "cosine"}, "expected one of linear, trapezoid, constant"),
        ({"sampler": "none"}, "expected one of poisson, log-uniform, full"),
        ({"batch": 0}, "batch is 0; expected a whole number from 1 up"),
        ({"passage": 0}, "passage is 0; expected a whole number from 1 up"),
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
    recipe = get_recipe(name).replace(seed=7, rate=None)
    assert recipe.seed == 7
    assert recipe.rate == RECIPES[name].rate
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_files_of_earlier_versions() -> None:
    """Written before the spelling changed."""
    data = RECIPES["bilm-tf"].to_dict()
    data["optimiser"] = data.pop("optimizer")
    assert Recipe.from_dict(data) == RECIPES["bilm-tf"]


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match="unknown momentum; expected some of text, batch"):
        Recipe.from_dict({"momentum": 0.9})
    with pytest.raises(InputError, match="expected one of recommended, bilm-tf"):
        get_recipe("best")


def test_bilm_tf_is_as_published() -> None:
    recipe = RECIPES["bilm-tf"]
    assert (recipe.lanes, recipe.window, recipe.negatives) == (128, 20, 8192)
    assert (recipe.optimizer, recipe.rate, recipe.clip, recipe.dropout) == ("adagrad", 0.2, 10, 0.1)


# -- shards --------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(RECIPES)),
    st.integers(1, 300),
    st.integers(1, 5),
    st.sampled_from([1, 6, 20, 128]),
)
def test_shards_can_be_divided(name: str, processors: int, processes: int, lanes: int) -> None:
    recipe = RECIPES[name].replace(shards=1, lanes=lanes)
    shards = count_shards(recipe, processors, processes)
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
    assert count_shards(RECIPES[name], processors, processes) == shards
