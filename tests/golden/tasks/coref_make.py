"""Make coref.json: coreference scores by two packages that others wrote.

    pip install scorch==0.2.0 coreference-eval==0.0.2
    python tests/golden/tasks/coref_make.py

`alone` holds pairs of partitions, clusters of one included, with what scorch says of each: recall,
precision and F1 of MUC, B³ and CEAFφ4. `together` holds sets of documents without clusters of one,
with what coreference-eval (the metric code of e2e-coref) says of each set. Mentions are numbers.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from corefeval.document import Document
from corefeval.scorer import Scorer
from scorch import scores

Partition = list[list[int]]

BY_HAND: list[tuple[Partition, Partition]] = [
    ([[1, 2], [3, 4, 5]], [[1, 2], [3, 4, 5]]),
    ([[1, 2], [3, 4, 5]], [[1, 2, 3, 4, 5]]),
    ([[1, 2, 3, 4, 5]], [[1, 2], [3, 4, 5]]),
    ([[1, 2], [3, 4]], [[1, 3], [2, 4]]),  # a tie: no alignment is better than another
    ([[1, 2], [3, 4]], [[1, 2, 5, 6], [3, 7]]),
    ([[1], [2], [3]], [[1], [2], [4]]),  # only clusters of one
    ([[1], [2, 3], [4, 5, 6]], [[1, 2], [3], [4, 6], [7]]),
    ([[1, 2, 3]], [[1], [2], [3]]),
    ([[1, 2, 3, 4, 5, 6, 7]], [[0, 1, 2], [3, 4, 8], [5, 6, 9]]),
]


NOTHING_RIGHT: list[tuple[Partition, Partition]] = [([[1, 2], [3, 4]], [[5, 6], [7, 8]])]
"""scorch cannot compute the F1 of this."""


def partition(mentions: list[int], clusters: int) -> Partition:
    """Mentions in clusters at random, some of them left out."""
    groups: Partition = [[] for _ in range(clusters)]
    for mention in mentions:
        if random.random() < 0.8:
            random.choice(groups).append(mention)
    return [sorted(group) for group in groups if group] or [[mentions[0]]]


def pair() -> tuple[Partition, Partition]:
    """A key and a response that share some of their mentions."""
    mentions = list(range(random.randint(2, 40)))
    return (
        partition(mentions, random.randint(1, 15)),
        partition([m + random.choice([0, 0, 0, 100]) for m in mentions], random.randint(1, 15)),
    )


def alone(key: Partition, response: Partition) -> dict[str, Any]:
    """What scorch says."""
    sets = [set(cluster) for cluster in key], [set(cluster) for cluster in response]
    return {
        "key": key,
        "response": response,
        "muc": scores.muc(*sets),
        "b_cubed": scores.b_cubed(*sets),
        "ceaf": scores.ceaf_e(*sets),
    }


def together(documents: list[tuple[Partition, Partition]]) -> dict[str, Any]:
    """What coreference-eval says; precision comes first there, recall here."""
    scorer = Scorer()
    large = [
        tuple([tuple(cluster) for cluster in clusters if len(cluster) > 1] for clusters in pair)
        for pair in documents
    ]
    for key, response in large:
        # There a mention is a sequence, as of its first and last word.
        scorer.update(Document(*([[(m,) for m in c] for c in side] for side in (response, key))))
    measured = {metric.metric.__name__: metric.get_prf() for metric in scorer.all}
    return {
        "documents": large,
        "average": sum(measured[name][2] for name in ("muc", "b_cubed", "ceafe")) / 3,
        **{
            ours: (measured[theirs][1], measured[theirs][0], measured[theirs][2])
            for ours, theirs in (("muc", "muc"), ("b_cubed", "b_cubed"), ("ceaf", "ceafe"))
        },
    }


if __name__ == "__main__":
    random.seed(2017)
    made = {
        "made_by": "scorch 0.2.0, coreference-eval 0.0.2",
        "alone": [alone(*one) for one in [*BY_HAND, *(pair() for _ in range(40))]],
        "together": [
            together(documents)
            for documents in (
                NOTHING_RIGHT,
                *([pair() for _ in range(random.randint(1, 6))] for _ in range(10)),
            )
        ],
    }
    path = Path(__file__).with_name("coref.json")
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
