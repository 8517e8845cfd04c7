"""The score of entities as conlleval has it: an entity counts if its words and its type are right.

Precision, recall and F1 over all entities of a set (not an average over sentences or types), and
the same for each type. Malformed tags are read by the rule of `chunks.py`. What has nothing to
divide by is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from elmokit.tasks.chunks import spans
from elmokit.tasks.ner.data import Example, Prediction

SCORE = "f1"


def score(examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """`f1`, `precision`, `recall` in percent, the same by type (`f1 PER`), and how many there are.

    Sentences without gold tags do not count.
    """
    gold: Counter[str] = Counter()
    found: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for example, prediction in zip(examples, predictions, strict=True):
        if example.tags is None:
            continue
        theirs, ours = set(spans(example.tags)), set(spans(prediction))
        gold.update(span.type for span in theirs)
        found.update(span.type for span in ours)
        right.update(span.type for span in theirs & ours)
    scores = _scores(right.total(), found.total(), gold.total())
    scores["entities"] = float(gold.total())
    for type_ in sorted(gold | found):
        by_type = _scores(right[type_], found[type_], gold[type_])
        scores |= {f"{name} {type_}": value for name, value in by_type.items()}
    return scores


def _scores(right: int, found: int, gold: int) -> dict[str, float]:
    return {
        "f1": 200 * right / (found + gold) if found + gold else 0.0,
        "precision": 100 * right / found if found else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
    }
