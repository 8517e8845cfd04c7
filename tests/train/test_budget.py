"""How long a run lasts."""

from __future__ import annotations

from typing import Any

import pytest

from elmokit.errors import InputError
from elmokit.train.budget import Budget


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(minutes=2), 0.25),
        (Budget(tokens=400), 0.5),
        (Budget(epochs=2), 0.1),
        (Budget(epochs=0.1), 1.0),
        (Budget(tokens=10), 1.0),
    ],
)
def test_spent(budget: Budget, spent: float) -> None:
    assert budget.spent(seconds=30, tokens=200, epoch_tokens=1000) == pytest.approx(spent)
    assert budget.spent(seconds=0, tokens=0, epoch_tokens=1000) == 0
    assert Budget(**budget.to_dict()) == budget


def test_scaled() -> None:
    assert Budget(minutes=10).scaled(0.3) == Budget(minutes=3)
    assert Budget(epochs=1).scaled(0.25) == Budget(epochs=0.25)
    assert Budget(tokens=100).scaled(0.3) == Budget(tokens=30)
    assert Budget(tokens=1).scaled(0.3) == Budget(tokens=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the budget sets nothing"),
        ({"minutes": 1, "epochs": 1}, "the budget sets minutes, epochs"),
        ({"tokens": 0}, "tokens is 0"),
        ({"minutes": -1.0}, "above 0"),
        ({"epochs": float("nan")}, "epochs is nan"),
        ({"epochs": float("inf")}, "epochs is inf"),
    ],
)
def test_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Budget(**given)
