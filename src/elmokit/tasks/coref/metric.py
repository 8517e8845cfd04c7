"""MUC, B³, CEAFφ4 and their average, as the scorer of CoNLL-2012 counts them.

Counts are summed over the documents before they are divided. A mention is right if its words are
exactly those of the key. Of a mention that a response has twice, the first is kept. The `Counts`
functions take clusters as they are, clusters of one mention included, and then agree with the
official scorer on them. `score` leaves the clusters of one out of key and response: the data of
CoNLL-2012 has none in its key, and a model that ranks antecedents cannot give any; the official
scorer counts them (in B³ and CEAF) if they are in the files. So on data that marks them, as
LitBank, the numbers are those of the official scorer after they have been taken out of both files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.errors import InputError
from elmokit.tasks.coref.assignment import assign
from elmokit.tasks.coref.data import Clusters, Example, Mention

SCORE = "average"


class Counts(NamedTuple):
    """What recall and precision are made of; can be added up over documents."""

    recalled: float
    key: float
    """What there was to recall."""
    precise: float
    response: float
    """What was answered."""

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def recall(self) -> float:
        """Between 0 and 1; 0 if there was nothing to recall."""
        return self.recalled / self.key if self.key else 0.0

    @property
    def precision(self) -> float:
        """Between 0 and 1; 0 if nothing was answered."""
        return self.precise / self.response if self.response else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def score(examples: Sequence[Example], predictions: Sequence[Clusters]) -> dict[str, float]:
    """In percent: F1, precision and recall of each metric, and the average of the three F1."""
    totals = dict.fromkeys(METRICS, Counts(0, 0, 0, 0))
    for example, prediction in zip(examples, predictions, strict=True):
        if example.clusters is None:
            raise InputError(
                f"document {example.document} has no gold clusters; expected a file with a "
                "coreference column to score against"
            )
        key = without_singletons(once(example.clusters))
        response = without_singletons(once(prediction))
        for name, counts in METRICS.items():
            totals[name] += counts(key, response)
    scores = {SCORE: 100 * sum(totals[name].f1 for name in CONLL) / len(CONLL)}
    for name, total in totals.items():
        scores[name] = 100 * total.f1
        scores[f"{name}_precision"] = 100 * total.precision
        scores[f"{name}_recall"] = 100 * total.recall
    return scores


def muc(key: Clusters, response: Clusters) -> Counts:
    """Links (Vilain et al. 1995): a cluster of n mentions has n - 1."""
    right = sum(common - 1 for common in _overlaps(key, response).values())
    return Counts(right, sum(len(k) - 1 for k in key), right, sum(len(r) - 1 for r in response))


def b_cubed(key: Clusters, response: Clusters) -> Counts:
    """Mentions, each by the share of its cluster that is right (Bagga and Baldwin 1998)."""
    recalled = precise = 0.0
    for (k, r), common in _overlaps(key, response).items():
        recalled += common**2 / len(key[k])
        precise += common**2 / len(response[r])
    return Counts(recalled, sum(map(len, key)), precise, sum(map(len, response)))


def ceaf(key: Clusters, response: Clusters) -> Counts:
    """Clusters, each aligned with at most one, by the overlap φ4 (Luo 2005)."""
    phi4_KR = np.zeros((len(key), len(response)))
    for (k, r), common in _overlaps(key, response).items():
        phi4_KR[k, r] = 2 * common / (len(key[k]) + len(response[r]))
    # Those without any overlap add nothing, wherever they go.
    phi4_KR = phi4_KR[phi4_KR.any(axis=1)][:, phi4_KR.any(axis=0)]
    right = float(phi4_KR[assign(phi4_KR)].sum())
    return Counts(right, len(key), right, len(response))


def mentions(key: Clusters, response: Clusters) -> Counts:
    """Mentions in any cluster: what was found at all."""
    in_key = {mention for cluster in key for mention in cluster}
    in_response = {mention for cluster in response for mention in cluster}
    right = len(in_key & in_response)
    return Counts(right, len(in_key), right, len(in_response))


CONLL = ("muc", "b_cubed", "ceaf")
"""The metrics whose average is the score of CoNLL-2012."""
METRICS: dict[str, Callable[[Clusters, Clusters], Counts]] = {
    "muc": muc,
    "b_cubed": b_cubed,
    "ceaf": ceaf,
    "mentions": mentions,
}


def once(clusters: Clusters) -> Clusters:
    """The clusters with every mention only where it comes first, and no empty ones."""
    seen: set[Mention] = set()
    result = []
    for cluster in clusters:
        new = tuple(mention for mention in dict.fromkeys(cluster) if mention not in seen)
        seen.update(new)
        if new:
            result.append(new)
    return tuple(result)


def without_singletons(clusters: Iterable[Sequence[Mention]]) -> Clusters:
    """The clusters of two mentions or more."""
    return tuple(tuple(cluster) for cluster in clusters if len(cluster) > 1)


def _overlaps(key: Clusters, response: Clusters) -> Counter[tuple[int, int]]:
    """How many mentions a key cluster and a response cluster share, where they share any."""
    place = {mention: k for k, cluster in enumerate(key) for mention in cluster}
    return Counter(
        (place[mention], r)
        for r, cluster in enumerate(response)
        for mention in cluster
        if mention in place
    )
