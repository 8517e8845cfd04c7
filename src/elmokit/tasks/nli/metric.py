"""Accuracy of entailment labels, overall and by gold label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from elmokit.errors import InputError
from elmokit.tasks.nli.data import Example, Prediction, gold_label

MAIN_SCORE = "accuracy"


def score(examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Return the accuracy in percent, and accuracy and number of pairs for each gold label."""
    if len(examples) != len(predictions) or not examples:
        raise InputError(
            f"{len(predictions)} predictions for {len(examples)} pairs; expected one for each, "
            "and at least one"
        )
    gold = Counter(map(gold_label, examples))
    right = Counter(
        prediction.label
        for example, prediction in zip(examples, predictions, strict=True)
        if prediction.label == example.label
    )
    scores: dict[str, float] = {MAIN_SCORE: 100 * right.total() / gold.total()}
    for label in sorted(gold):
        scores[f"{MAIN_SCORE} {label}"] = 100 * right[label] / gold[label]
        scores[f"pairs {label}"] = gold[label]
    return scores
