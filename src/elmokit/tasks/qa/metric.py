"""SQuAD's scores, as its official script for version 1.1 computes them.

Answers are compared in lowercase, without ASCII punctuation and articles, and with white space
normalized. With several gold answers the best comparison counts. Exact match (EM) requires equal
texts, F1 counts common words. A question without a prediction scores 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from elmokit.errors import InputError
from elmokit.tasks.qa.answers import Prediction
from elmokit.tasks.qa.data import Example

MAIN_SCORE = "F1"

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def score(
    examples: Sequence[Example], predictions: Sequence[Prediction | None]
) -> dict[str, float]:
    """Return EM and F1 in percent; a prediction of None is a question without an answer."""
    exact = shared = 0.0
    for example, prediction in zip(examples, predictions, strict=True):
        if not example.answers:
            raise InputError(f"{example.where or example.id}: no gold answer to compare with")
        if prediction is not None:
            golds = [gold.text for gold in example.answers]
            exact += best_match(exact_match, prediction.best.text, golds)
            shared += best_match(f1, prediction.best.text, golds)
    count = max(len(examples), 1)
    return {"EM": 100 * exact / count, "F1": 100 * shared / count}


def best_match(measure: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """Return the best value of a measure over the gold answers."""
    return max(measure(answer, gold) for gold in golds)


def exact_match(answer: str, gold: str) -> float:
    """Return 1 if only case, punctuation, articles and white space differ, else 0."""
    return float(normalize_answer(answer) == normalize_answer(gold))


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over words, counted with repetitions.

    Two answers that are empty after normalization are an exact match and still have F1 0: the
    rule is odd, but it is the official one.
    """
    words, gold_words = normalize_answer(answer).split(), normalize_answer(gold).split()
    common = (Counter(words) & Counter(gold_words)).total()
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def normalize_answer(text: str) -> str:
    """Return an answer in the form in which it is compared."""
    # In this order: lowercase first, so that "The" is an article; punctuation before articles, so
    # that "the-" is one too.
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())
