"""Accuracy and mean absolute error."""

import json
from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.tasks.sentiment.data import Example, Prediction
from elmokit.tasks.sentiment.metric import MAIN_SCORE, score

GOLDEN = Path(__file__).parents[2] / "golden" / "tasks" / "sentiment_accuracy.json"


def says(label: int, classes: int = 5) -> Prediction:
    return Prediction(label, tuple(float(k == label) for k in range(classes)))


def test_accuracy_and_distance() -> None:
    gold = [Example(("a",), label) for label in (0, 4, 2, 3)]
    scores = score(gold, [says(label) for label in (0, 1, 3, 3)])
    assert MAIN_SCORE in scores
    assert scores == {"accuracy": 50.0, "mean absolute error": 1.0, "sentences": 4}


def test_it_agrees_with_scikit_learn() -> None:
    for case in json.loads(GOLDEN.read_text(encoding="utf-8")):
        gold = [Example(("a",), label, case["classes"]) for label in case["gold"]]
        scores = score(gold, [says(label, case["classes"]) for label in case["predicted"]])
        assert scores["accuracy"] == pytest.approx(case["accuracy"], abs=1e-9)
        assert scores["mean absolute error"] == pytest.approx(case["error"], abs=1e-9)


def test_answers_of_two_classes_are_not_scored_against_five() -> None:
    with pytest.raises(InputError, match="a prediction of 2 classes for a label of 5"):
        score([Example(("a",), 1)], [says(1, 2)])
    assert score([Example(("a",), 1, 2)], [says(1, 2)])["accuracy"] == 100.0


def test_nothing_or_not_enough_to_score_is_an_error() -> None:
    with pytest.raises(InputError, match="0 predictions for 0 sentences"):
        score([], [])
    with pytest.raises(InputError, match="has no label"):
        score([Example(("a",))], [says(1)])
