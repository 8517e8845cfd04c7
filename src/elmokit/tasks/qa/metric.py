"""SQuAD's scores, as its official script for version 1.1 computes them.

An answer is compared after lower-casing, without ASCII punctuation, without articles and with
white space made single. With several gold answers the best comparison counts. EM asks for equal
texts, F1 counts words in common. A question that was not answered counts 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from elmokit.errors import InputError
from elmokit.tasks.qa.answers import Prediction
from elmokit.tasks.qa.data import Example

SCORE = "F1"

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def score(
    examples: Sequence[Example], predictions: Sequence[Prediction | None]
) -> dict[str, float]:
    """EM and F1 in percent; None stands for a question that was not answered."""
    exact = shared = 0.0
    for example, given in zip(examples, predictions, strict=True):
        if not example.answers:
            raise InputError(f"{example.where or example.id}: no gold answer to compare with")
        if given is not None:
            golds = [gold.text for gold in example.answers]
            exact += best(exact_match, given.best.text, golds)
            shared += best(f1, given.best.text, golds)
    count = max(len(examples), 1)
    return {"EM": 100 * exact / count, "F1": 100 * shared / count}


def best(measure: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """The measure against the gold answer that fits best."""
    return max(measure(answer, gold) for gold in golds)


def exact_match(answer: str, gold: str) -> float:
    """1 if nothing but case, punctuation, articles and white space differs, else 0."""
    return float(normalize(answer) == normalize(gold))


def f1(answer: str, gold: str) -> float:
    """The harmonic mean of precision and recall over words, each as often as it occurs.

    Two answers that are empty after normalization are an exact match and still have F1 0: the
    rule is odd, but it is the official one.
    """
    given, wanted = normalize(answer).split(), normalize(gold).split()
    common = (Counter(given) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(given), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def normalize(text: str) -> str:
    """What is compared of an answer."""
    # In this order: lower-casing first, so that "The" is an article; punctuation before articles,
    # so that "the-" is one too.
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())
