"""Scores of entities as conlleval computes them: an entity is right if its words and type are.

Precision, recall and F1 over all entities of a set (not an average over sentences or types), and
the same for each type. Malformed tags are read by the rule of `tag_schemes.py`. A score that would
divide by zero is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from elmokit.tasks.ner.data import Example
from elmokit.tasks.tag_schemes import tags_to_spans

MAIN_SCORE = "f1"


def score(examples: Sequence[Example], predictions: Sequence[tuple[str, ...]]) -> dict[str, float]:
    """Return `f1`, `precision`, `recall` in percent, also by type (`f1 PER`), and `entities`.

    Sentences without gold tags do not count.
    """
    gold: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for example, prediction in zip(examples, predictions, strict=True):
        if example.tags is None:
            continue
        gold_spans, spans = set(tags_to_spans(example.tags)), set(tags_to_spans(prediction))
        gold.update(span.type for span in gold_spans)
        predicted.update(span.type for span in spans)
        right.update(span.type for span in gold_spans & spans)
    scores = _scores(right.total(), predicted.total(), gold.total())
    scores["entities"] = float(gold.total())
    for type_ in sorted(gold | predicted):
        by_type = _scores(right[type_], predicted[type_], gold[type_])
        scores |= {f"{name} {type_}": value for name, value in by_type.items()}
    return scores


def _scores(right: int, predicted: int, gold: int) -> dict[str, float]:
    return {
        "f1": 200 * right / (predicted + gold) if predicted + gold else 0.0,
        "precision": 100 * right / predicted if predicted else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
    }
