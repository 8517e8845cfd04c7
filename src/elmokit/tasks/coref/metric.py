"""MUC, B³, CEAFφ4 and their average, as the official scorer of CoNLL-2012 computes them.

Counts are summed over the documents before they are divided. A mention is right if its words are
exactly those of the key. Of a mention that a response has twice, the first is used. The functions
that return `Counts` take clusters as they are, with singletons (clusters of one mention), and agree
with the official scorer on them. `score` removes singletons from key and response: the data of
CoNLL-2012 has none in its key, and a model that ranks antecedents cannot predict any; the official
scorer counts them (in B³ and CEAF) if they are in the files. So on data that marks them, such as
LitBank, the numbers are those of the official scorer after they were removed from both files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.errors import InputError
from elmokit.tasks.coref.assignment import assign
from elmokit.tasks.coref.data import Clusters, Example, Mention

MAIN_SCORE = "average"


class Counts(NamedTuple):
    """Numerators and denominators of recall and precision, to be added over documents."""

    recalled: float
    """Numerator of recall."""
    key: float
    """Denominator of recall: the size of the key."""
    precise: float
    """Numerator of precision."""
    response: float
    """Denominator of precision: the size of the response."""

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def recall(self) -> float:
        """Recall, between 0 and 1; 0 if the key is empty."""
        return self.recalled / self.key if self.key else 0.0

    @property
    def precision(self) -> float:
        """Precision, between 0 and 1; 0 if the response is empty."""
        return self.precise / self.response if self.response else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def score(examples: Sequence[Example], predictions: Sequence[Clusters]) -> dict[str, float]:
    """Return F1, precision and recall of each metric, and the average F1 of three, in percent."""
    totals = dict.fromkeys(METRICS, Counts(0, 0, 0, 0))
    for example, prediction in zip(examples, predictions, strict=True):
        if example.clusters is None:
            raise InputError(
                f"document {example.document} has no gold clusters; expected a file with a "
                "coreference column to score against"
            )
        key = without_singletons(without_repeated_mentions(example.clusters))
        response = without_singletons(without_repeated_mentions(prediction))
        for name, counts in METRICS.items():
            totals[name] += counts(key, response)
    scores = {MAIN_SCORE: 100 * sum(totals[name].f1 for name in CONLL) / len(CONLL)}
    for name, total in totals.items():
        scores[name] = 100 * total.f1
        scores[f"{name}_precision"] = 100 * total.precision
        scores[f"{name}_recall"] = 100 * total.recall
    return scores


def muc(key: Clusters, response: Clusters) -> Counts:
    """Return the counts of MUC (Vilain et al. 1995): links, n - 1 in a cluster of n mentions."""
    right = sum(common - 1 for common in _overlaps(key, response).values())
    return Counts(right, sum(len(k) - 1 for k in key), right, sum(len(r) - 1 for r in response))


def b_cubed(key: Clusters, response: Clusters) -> Counts:
    """Return the counts of B³ (Bagga and Baldwin 1998): mentions, by how right their cluster is."""
    recalled = precise = 0.0
    for (k, r), common in _overlaps(key, response).items():
        recalled += common**2 / len(key[k])
        precise += common**2 / len(response[r])
    return Counts(recalled, sum(map(len, key)), precise, sum(map(len, response)))


def ceaf(key: Clusters, response: Clusters) -> Counts:
    """Return the counts of CEAF (Luo 2005): clusters, aligned one to one by the overlap φ4."""
    phi4_KR = np.zeros((len(key), len(response)))
    for (k, r), common in _overlaps(key, response).items():
        phi4_KR[k, r] = 2 * common / (len(key[k]) + len(response[r]))
    # Clusters without any overlap add nothing, whatever they are aligned with.
    phi4_KR = phi4_KR[phi4_KR.any(axis=1)][:, phi4_KR.any(axis=0)]
    right = float(phi4_KR[assign(phi4_KR)].sum())
    return Counts(right, len(key), right, len(response))


def mentions(key: Clusters, response: Clusters) -> Counts:
    """Return the counts of mentions in any cluster: mention detection."""
    in_key = {mention for cluster in key for mention in cluster}
    in_response = {mention for cluster in response for mention in cluster}
    right = len(in_key & in_response)
    return Counts(right, len(in_key), right, len(in_response))


CONLL = ("muc", "b_cubed", "ceaf")
"""The metrics whose average F1 is the score of CoNLL-2012."""
METRICS: dict[str, Callable[[Clusters, Clusters], Counts]] = {
    "muc": muc,
    "b_cubed": b_cubed,
    "ceaf": ceaf,
    "mentions": mentions,
}
"""All metrics, by name."""


def without_repeated_mentions(clusters: Clusters) -> Clusters:
    """Return the clusters with every mention only where it occurs first, and no empty ones."""
    seen: set[Mention] = set()
    result = []
    for cluster in clusters:
        new = tuple(mention for mention in dict.fromkeys(cluster) if mention not in seen)
        seen.update(new)
        if new:
            result.append(new)
    return tuple(result)


def without_singletons(clusters: Iterable[Sequence[Mention]]) -> Clusters:
    """Return the clusters of at least two mentions."""
    return tuple(tuple(cluster) for cluster in clusters if len(cluster) > 1)


def _overlaps(key: Clusters, response: Clusters) -> Counter[tuple[int, int]]:
    """Count the mentions that a cluster of the key and one of the response share, if any."""
    cluster_of = {mention: k for k, cluster in enumerate(key) for mention in cluster}
    return Counter(
        (cluster_of[mention], r)
        for r, cluster in enumerate(response)
        for mention in cluster
        if mention in cluster_of
    )
