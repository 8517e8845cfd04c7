"""The promise of the test: where nothing has changed, p is at most 0.05 in 5 % of the cases."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from tests.conftest import REPOSITORY


def _script() -> Any:
    path = REPOSITORY / "benchmarks" / "change_null.py"
    spec = importlib.util.spec_from_file_location("change_null", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


change_null = _script()


@pytest.mark.parametrize("scenario", change_null.SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_rate_of_false_alarms(scenario: Any) -> None:
    found = list(change_null.simulate(scenario, 200, 99, seed=1))
    for name in ("prt_p", "apd_p"):
        rate = change_null.rate([getattr(documents, name) for documents, _ in found])
        # The standard error of 200 cases is 0.015; benchmarks/change_null.py has thousands.
        assert 0.01 <= rate <= 0.12, f"{name}: {rate}"


def test_permuting_uses_would_claim_too_much() -> None:
    topics = next(each for each in change_null.SCENARIOS if "topics" in each.name)
    found = list(change_null.simulate(topics, 50, 99, seed=1))
    assert change_null.rate([uses.prt_p for _, uses in found]) > 0.3


def test_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    change_null.print_simulations(cases=4, permutations=19, seed=0)
    out = capsys.readouterr().out
    assert all(scenario.name in out for scenario in change_null.SCENARIOS)
