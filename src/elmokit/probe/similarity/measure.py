"""The similarity probe: whether a word's vectors say that it means the same in two contexts.

Two uses are as alike as the cosine of their vectors says. Where people answered yes or no, the
answer is yes from some cosine on, which is chosen on other pairs; where they gave numbers, the
order of the cosines is compared with the order of the numbers. Beside the trained layers stand the
untrained network and layer 0, the characters, which are the same in all contexts.

Shape letters: L layers, N pairs, D size of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.paired import BoolArray, paired
from elmokit.probe.ranks import Array, area_under_curve, spearman, spearman_error
from elmokit.probe.results import Json, measurement
from elmokit.probe.similarity.pairs import Pair, Pairs, Use
from elmokit.probe.similarity.render import ALL
from elmokit.probe.untrained import untrained

DECIMALS = 6
"""Cosines that differ by less are equal: rounding errors are no order."""
FEWEST = 4
"""Pairs of each answer, so that there are two in both halves."""


def cosines(
    elmo: Elmo,
    pairs: Sequence[Pair],
    on_progress: Callable[[int, int], None] = lambda done, of: None,
) -> Array:
    """How alike the uses of each pair are, (L+2, N): by each layer, and by all, which is the mean.

    (The cosine of all layers side by side, each of length 1.) A word that was cut into several has
    the mean of their vectors.
    """
    uses = [use for pair in pairs for use in (pair.first, pair.second)]
    found = np.zeros((elmo.layers + 1, len(pairs)))
    before: FloatArray | None = None
    stream = elmo.stream((use.words for use in uses), layers="all")
    for i, (use, vectors_LTD) in enumerate(zip(uses, stream, strict=True)):
        vectors_LD = _of(use, vectors_LTD)
        if before is None:
            before = vectors_LD
            continue
        found[:-1, i // 2] = (before * vectors_LD).sum(1)
        before = None
        on_progress(i // 2 + 1, len(pairs))
    found[-1] = found[:-1].mean(0)
    return np.round(found, DECIMALS)


def _of(use: Use, vectors_LTD: FloatArray) -> FloatArray:
    """A use's vector of each layer, of length 1."""
    mean_LD = vectors_LTD[:, use.start : use.end].astype(np.float64).mean(1)
    unit_LD: FloatArray = mean_LD / np.maximum(np.linalg.norm(mean_LD, axis=1)[:, None], 1e-12)
    return unit_LD


# -- yes or no -----------------------------------------------------------------------------------


def threshold(cosines_N: Array, same: Sequence[bool]) -> float:
    """The cosine from which on to say yes: the one that is right most often.

    Between two cosines; where several are as good, the middle one of them, or the upper of two.
    """
    order = np.argsort(cosines_N, kind="stable")
    sorted_N, yes_N = cosines_N[order], np.asarray(same, bool)[order]
    # Right if the first k are answered no and the others yes.
    right = np.concatenate([[0], np.cumsum(~yes_N)]) + yes_N.sum()
    right -= np.concatenate([[0], np.cumsum(yes_N)])
    between = np.flatnonzero(np.diff(sorted_N) > 0) + 1
    cuts = np.array([0, *between, len(sorted_N)])
    good = cuts[right[cuts] == right[cuts].max()]
    k = int(good[len(good) // 2])
    if k == 0:
        return float(sorted_N[0])
    if k == len(sorted_N):
        return float(sorted_N[-1]) + 10.0**-DECIMALS
    return float(sorted_N[k - 1] + sorted_N[k]) / 2


def cross_fitted(cosines_N: Array, same: Sequence[bool]) -> tuple[list[float], BoolArray]:
    """Which answers are right if each half of the pairs has the threshold of the other half.

    Every second pair of each answer is in a half, so that both have as many of them. Also the two
    thresholds.
    """
    yes_N = np.asarray(same, bool)
    half_N = np.zeros(len(yes_N), np.int64)
    for answer in (True, False):
        those = np.flatnonzero(yes_N == answer)
        half_N[those] = np.arange(len(those)) % 2
    right_N = np.zeros(len(yes_N), bool)
    found = []
    for half in (0, 1):
        learned, told = half_N == half, half_N != half
        found.append(threshold(cosines_N[learned], yes_N[learned].tolist()))
        right_N[told] = (cosines_N[told] >= found[-1]) == yes_N[told]
    return found, right_N


def _yes_or_no(
    cosines_N: Array, same: Sequence[bool], train: tuple[Array, Sequence[bool]] | None
) -> tuple[Json, BoolArray]:
    yes_N = np.asarray(same, bool)
    if train is None:
        thresholds, right_N = cross_fitted(cosines_N, same)
    else:
        thresholds = [threshold(*train)]
        right_N = (cosines_N >= thresholds[0]) == yes_N
    accuracy = float(right_N.mean())
    score: Json = {
        "accuracy": accuracy,
        "standard_error": math.sqrt(accuracy * (1 - accuracy) / len(yes_N)),
        "auc": area_under_curve(cosines_N, same),
        "thresholds": thresholds,
        "cosine same": float(cosines_N[yes_N].mean()),
        "cosine different": float(cosines_N[~yes_N].mean()),
    }
    return score, right_N


# -- numbers -------------------------------------------------------------------------------------


def _by_subset(cosines_N: Array, data: Pairs) -> Json:
    found: Json = {}
    for name, those_N in _subsets(data).items():
        ratings_N = np.asarray(data.ratings)[those_N]
        rho = spearman(cosines_N[those_N], ratings_N) if those_N.sum() > 2 else None
        error = None if rho is None else spearman_error(rho, len(ratings_N))
        found[name] = {"spearman": rho, "standard_error": error}
    return found


def _subsets(data: Pairs) -> dict[str, BoolArray]:
    same_N = np.array([pair.same_word for pair in data.pairs], bool)
    return {"all": np.ones(len(same_N), bool), "same": same_N, "different": ~same_N}


def one_against_others(raters: Sequence[Sequence[float]]) -> float | None:
    """How well people agree: the mean correlation of one with the mean of the others."""
    if not raters:
        return None
    ratings = np.array(raters, np.float64)
    found = []
    for k in range(ratings.shape[1]):
        rho = spearman(ratings[:, k], np.delete(ratings, k, axis=1).mean(1))
        if rho is not None:
            found.append(rho)
    return float(np.mean(found)) if found else None


# -- the measurement -----------------------------------------------------------------------------


def measure(
    elmo: Elmo,
    data: Pairs,
    signature: Json,
    *,
    train: Pairs | None = None,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, of: None,
) -> Json:
    """The trained and the untrained network, as one object.

    Args:
        elmo: the model.
        data: the pairs.
        signature: of `measured.signature`.
        train: other pairs, to choose the threshold on; the other half of `data` by default.
        seed: of the untrained network.
        on_progress: hears how many pairs of how many were read.
    """
    _check(data, train)
    blank = Elmo(untrained(elmo.bilm, seed), threads=elmo.threads)
    layers = [*map(str, range(elmo.layers)), ALL]
    total = 2 * (len(data.pairs) + (len(train.pairs) if train else 0))
    done = 0
    scores: list[Json] = []
    right: dict[tuple[str, str], BoolArray] = {}
    for network, model in zip(NETWORKS, (elmo, blank), strict=True):
        read = []
        for each in (data, *([train] if train else [])):
            tell = partial(_tell, on_progress, done, total)
            read.append(cosines(model, each.pairs, tell))
            done += len(each.pairs)
        for j, layer in enumerate(layers):
            if data.answers:
                learned = (read[1][j], train.answers) if train else None
                score, right[network, layer] = _yes_or_no(read[0][j], data.answers, learned)
            else:
                score = _by_subset(read[0][j], data)
            scores.append({"network": network, "layer": layer, **score})
    more: Json = {"asked": "answers" if data.answers else "ratings", "pairs": len(data.pairs)}
    if data.answers:
        lower, upper = right["trained", "1"], right["trained", layers[-2]]
        found = paired(upper, lower)
        more["same"] = sum(data.answers)
        more["threshold from"] = len(train.pairs) if train else "the other half"
        more["upper_against_lower"] = {
            "upper": layers[-2],
            "lower": "1",
            **asdict(found),
            "difference": found.difference,
            "standard_error": found.standard_error,
        }
    else:
        more["sizes"] = {name: int(those_N.sum()) for name, those_N in _subsets(data).items()}
        more["people"] = one_against_others(data.raters)
    return measurement("similarity", signature, **more, scores=scores)


def _tell(
    on_progress: Callable[[int, int], None], before: int, total: int, done: int, of: int
) -> None:
    on_progress(before + done, total)


def _check(data: Pairs, train: Pairs | None) -> None:
    if not data.answers:
        if train is not None:
            raise InputError("ratings are compared by their order: there is nothing to train")
        if len(data.pairs) < FEWEST:
            raise InputError(f"{len(data.pairs)} pairs; expected {FEWEST} or more")
        return
    if train is not None and not train.answers:
        raise InputError("the pairs to train on have ratings; expected yes or no, as the others")
    for name, each in (("the pairs", data), ("the pairs to train on", train)):
        if each is not None and min(sum(each.answers), each.answers.count(False)) < FEWEST:
            raise InputError(
                f"{name} have {sum(each.answers)} that mean the same and "
                f"{each.answers.count(False)} that do not; expected {FEWEST} or more of each"
            )
