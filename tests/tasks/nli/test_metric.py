"""Accuracy, over all and label by label."""

import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.nli.data import Example, Prediction
from elmokit.tasks.nli.metric import MAIN_SCORE, score

GOLDEN = Path(__file__).parents[2] / "golden" / "tasks" / "nli_accuracy.json"


def pair(label: str | None) -> Example:
    return Example(("a",), ("b",), label)


def says(label: str) -> Prediction:
    return Prediction(label, {label: 1.0})


def test_accuracy_over_all_and_by_gold_label() -> None:
    gold = [pair(label) for label in "eenc"]
    scores = score(gold, [says(label) for label in "encc"])
    assert MAIN_SCORE == "accuracy"
    assert scores == {
        "accuracy": 50.0,
        "accuracy c": 100.0,
        "pairs c": 1,
        "accuracy e": 50.0,
        "pairs e": 2,
        "accuracy n": 0.0,
        "pairs n": 1,
    }


def test_a_label_that_is_predicted_but_never_gold_counts_as_wrong() -> None:
    assert score([pair("e")], [says("unheard of")]) == {
        "accuracy": 0.0,
        "accuracy e": 0.0,
        "pairs e": 1,
    }


def test_it_agrees_with_scikit_learn() -> None:
    for case in json.loads(GOLDEN.read_text(encoding="utf-8")):
        scores = score([pair(x) for x in case["gold"]], [says(x) for x in case["predicted"]])
        assert scores["accuracy"] == pytest.approx(case["accuracy"], abs=1e-9)
        for label, recall in case["recall"].items():
            assert scores[f"accuracy {label}"] == pytest.approx(recall, abs=1e-9)


def test_nothing_or_not_enough_to_score_is_an_error() -> None:
    with pytest.raises(InputError, match="0 predictions for 0 pairs"):
        score([], [])
    with pytest.raises(InputError, match="2 predictions for 1 pairs"):
        score([pair("e")], [says("e"), says("e")])
    with pytest.raises(FormatError, match="no 'gold_label'"):
        score([pair(None)], [says("e")])
