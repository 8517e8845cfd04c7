"""Accuracy over five classes or two, and the mean distance from the gold label."""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.errors import InputError
from elmokit.tasks.sentiment.data import Example, Prediction, gold_label

MAIN_SCORE = "accuracy"


def score(examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Return the accuracy in percent, the mean absolute error of the label, and the count."""
    if len(examples) != len(predictions) or not examples:
        raise InputError(
            f"{len(predictions)} predictions for {len(examples)} sentences; expected one for each, "
            "and at least one"
        )
    errors = []
    for example, prediction in zip(examples, predictions, strict=True):
        if len(prediction.probabilities) != example.classes:
            raise InputError(
                f"a prediction of {len(prediction.probabilities)} classes for a label of "
                f"{example.classes}; prepare the examples with the sizes of the model"
            )
        errors.append(abs(prediction.label - gold_label(example)))
    return {
        MAIN_SCORE: 100 * errors.count(0) / len(errors),
        "mean absolute error": sum(errors) / len(errors),
        "sentences": len(errors),
    }
