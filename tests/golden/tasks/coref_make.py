"""Make coref.json: coreference scores computed by two other packages.

    pip install scorch==0.2.0 coreference-eval==0.0.2
    python tests/golden/tasks/coref_make.py

`alone` contains pairs of partitions, singletons included, with the scores of scorch for each:
recall, precision and F1 of MUC, B³ and CEAFφ4. `together` contains sets of documents without
singletons, with the scores of coreference-eval (the metrics of e2e-coref) for each set. Mentions
are numbers.
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
    ([[1, 2], [3, 4]], [[1, 3], [2, 4]]),  # a tie: all alignments are equally good
    ([[1, 2], [3, 4]], [[1, 2, 5, 6], [3, 7]]),
    ([[1], [2], [3]], [[1], [2], [4]]),  # singletons only
    ([[1], [2, 3], [4, 5, 6]], [[1, 2], [3], [4, 6], [7]]),
    ([[1, 2, 3]], [[1], [2], [3]]),
    ([[1, 2, 3, 4, 5, 6, 7]], [[0, 1, 2], [3, 4, 8], [5, 6, 9]]),
]


NOTHING_RIGHT: list[tuple[Partition, Partition]] = [([[1, 2], [3, 4]], [[5, 6], [7, 8]])]
"""Partitions whose F1 scorch cannot compute."""


def partition(mentions: list[int], clusters: int) -> Partition:
    """Assign mentions to clusters at random, and leave some out."""
    groups: Partition = [[] for _ in range(clusters)]
    for mention in mentions:
        if random.random() < 0.8:
            random.choice(groups).append(mention)
    return [sorted(group) for group in groups if group] or [[mentions[0]]]


def pair() -> tuple[Partition, Partition]:
    """Return a key and a response that share some of their mentions."""
    mentions = list(range(random.randint(2, 40)))
    return (
        partition(mentions, random.randint(1, 15)),
        partition([m + random.choice([0, 0, 0, 100]) for m in mentions], random.randint(1, 15)),
    )


def alone(key: Partition, response: Partition) -> dict[str, Any]:
    """Return a pair of partitions with the scores of scorch."""
    sets = [set(cluster) for cluster in key], [set(cluster) for cluster in response]
    return {
        "key": key,
        "response": response,
        "muc": scores.muc(*sets),
        "b_cubed": scores.b_cubed(*sets),
        "ceaf": scores.ceaf_e(*sets),
    }


def together(documents: list[tuple[Partition, Partition]]) -> dict[str, Any]:
    """Return documents with the scores of coreference-eval: recall, precision and F1."""
    scorer = Scorer()
    large = [
        tuple([tuple(cluster) for cluster in clusters if len(cluster) > 1] for clusters in pair)
        for pair in documents
    ]
    for key, response in large:
        # It expects a mention to be a sequence, such as its first and last word.
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
    content = {
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
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
