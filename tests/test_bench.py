"""The benchmark: its scenarios, units and input."""

from __future__ import annotations

from itertools import islice

import pytest

from elmokit.bench import SCENARIOS, benchmark, synthetic_sentences
from elmokit.elmo import Elmo
from elmokit.errors import InputError


def test_every_scenario_is_measured(elmo: Elmo) -> None:
    measured: list[str] = []
    medians = benchmark(elmo, ["The bank lent money ."] * 5, rounds=1, on_scenario=measured.append)
    assert list(medians) == measured == list(SCENARIOS)
    assert all(value > 0 for value in medians.values())


def test_synthetic_sentences_are_the_same_for_a_seed() -> None:
    first, again, other = (list(islice(synthetic_sentences(seed), 50)) for seed in (0, 0, 1))
    assert first == again != other
    assert all(sentence and all(sentence) for sentence in first)


def test_wrong_arguments(elmo: Elmo) -> None:
    with pytest.raises(InputError, match="rounds is 0"):
        benchmark(elmo, ["a"], rounds=0)
    with pytest.raises(InputError, match="have no words"):
        benchmark(elmo, ["", " "])
