"""The similarity probe: whether the vectors of a word reflect that it means the same twice.

The similarity of two words in context is the cosine of their vectors. Where people answered yes or
no, the answer is yes from a threshold on, which is chosen on other pairs; where they gave ratings,
the order of the cosines is compared with the order of the ratings. The baselines are the untrained
network and layer 0, the characters, whose vectors are the same in all contexts.

Shape letters: L layers, N pairs, D size of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import InputError
from elmokit.probe.context import ContextChoice, check_context, pool_context
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.paired import BoolArray, compare_paired
from elmokit.probe.ranks import Array, area_under_curve, spearman, spearman_error
from elmokit.probe.results import (
    Measurement,
    ModelOrName,
    ResultRow,
    as_elmo,
    make_measurement,
    make_signature,
)
from elmokit.probe.similarity.pairs import (
    ContextPair,
    PairDataset,
    WordInContext,
    find_gold_answers,
    read_pairs,
)
from elmokit.probe.similarity.render import ALL
from elmokit.probe.untrained import untrained_copy
from elmokit.progress import ProgressCallback, ignore_progress

DECIMALS = 6
"""Decimals to which cosines are rounded, so that rounding errors do not order them."""
MIN_PAIRS = 4
"""Minimum number of pairs with each answer, so that each half has two."""


def probe_similarity(
    pairs: str | Path,
    gold: str | Path | None = None,
    model: ModelOrName = BUILTIN,
    *,
    train_pairs: str | Path | None = None,
    train_gold: str | Path | None = None,
    format: str | None = None,
    context: ContextChoice = "word",
    progress: ProgressCallback = ignore_progress,
) -> Measurement:
    """Compare the similarity of words in context with human judgments, for each layer of a model.

    The command `elmo probe similarity` does this.

    Args:
        pairs: File of pairs; see `read_pairs`.
        gold: For WiC's text files, the file of answers; the one beside the pairs by default.
        model: A model, or the name or path of one.
        train_pairs: Other pairs to choose the threshold on; without them, the threshold for each
            half of the pairs is chosen on the other half.
        train_gold: The answers of `train_pairs`.
        format: Format of the files: `"wic"`, `"json"` or `"scws"`; detected by default.
        context: `"sentence"` compares the word and the mean of its sentence, `"word"` the word
            alone.
        progress: Called with the number of pairs done and of all pairs.

    Returns:
        The measurement, of kind `"similarity"`.
    """
    check_context(context)
    if train_gold is not None and train_pairs is None:
        raise InputError("there are answers to train on but no pairs; expected train_pairs as well")
    data = read_pairs(pairs, gold, format)
    files: dict[str, str | Path] = {"pairs": pairs}
    if data.format == "wic":
        files["gold"] = gold or find_gold_answers(pairs) or ""
    train = None
    if train_pairs is not None:
        train = read_pairs(train_pairs, train_gold, format)
        files["train-pairs"] = train_pairs
        if train.format == "wic":
            files["train-gold"] = train_gold or find_gold_answers(train_pairs) or ""
    elmo = as_elmo(model)
    signature = make_signature(elmo, files)
    if context != "word":
        signature |= {"context": context}
    return measure_similarity(
        elmo, data, signature, train=train, context=context, progress=progress
    )


def pair_cosines(
    elmo: Elmo,
    pairs: Sequence[ContextPair],
    progress: ProgressCallback = ignore_progress,
    context: ContextChoice = "word",
) -> Array:
    """Return the cosine of each pair (L+2, N): by each layer, and last by all, which is the mean.

    (The mean is the cosine of all layers side by side, each scaled to length 1.) A word that was
    split into several has the mean of their vectors.
    """
    uses = [use for pair in pairs for use in (pair.first, pair.second)]
    cosines = np.zeros((elmo.layers + 1, len(pairs)))
    first_LD: FloatArray | None = None
    stream = elmo.stream((use.words for use in uses), layers="all")
    for i, (use, vectors_LTD) in enumerate(zip(uses, stream, strict=True)):
        vectors_LD = _unit_vectors(use, vectors_LTD, context)
        if first_LD is None:
            first_LD = vectors_LD
            continue
        cosines[:-1, i // 2] = (first_LD * vectors_LD).sum(1)
        first_LD = None
        progress(i // 2 + 1, len(pairs))
    cosines[-1] = cosines[:-1].mean(0)
    return np.round(cosines, DECIMALS)


def _unit_vectors(
    use: WordInContext, vectors_LTD: FloatArray, context: ContextChoice
) -> FloatArray:
    """Return each layer's vector of a word in context, scaled to length 1."""
    mean_LD = vectors_LTD[:, use.start : use.end].astype(np.float64).mean(1)
    mean_LD = pool_context(mean_LD, vectors_LTD, context)
    unit_LD: FloatArray = mean_LD / np.maximum(np.linalg.norm(mean_LD, axis=1)[:, None], 1e-12)
    return unit_LD


# -- yes/no answers ------------------------------------------------------------------------------


def best_threshold(cosines_N: Array, same: Sequence[bool]) -> float:
    """Return the cosine from which on yes is the answer, with the highest accuracy.

    It lies between two cosines; if several are equally good, it is the middle one of them, or the
    upper one of the two in the middle.
    """
    order = np.argsort(cosines_N, kind="stable")
    sorted_N, yes_N = cosines_N[order], np.asarray(same, bool)[order]
    # Number of correct answers if the first k are answered no and the others yes.
    correct = np.concatenate([[0], np.cumsum(~yes_N)]) + yes_N.sum()
    correct -= np.concatenate([[0], np.cumsum(yes_N)])
    between = np.flatnonzero(np.diff(sorted_N) > 0) + 1
    cuts = np.array([0, *between, len(sorted_N)])
    good = cuts[correct[cuts] == correct[cuts].max()]
    k = int(good[len(good) // 2])
    if k == 0:
        return float(sorted_N[0])
    if k == len(sorted_N):
        return float(sorted_N[-1]) + 10.0**-DECIMALS
    return float(sorted_N[k - 1] + sorted_N[k]) / 2


def cross_fitted(cosines_N: Array, same: Sequence[bool]) -> tuple[list[float], BoolArray]:
    """Answer each half of the pairs with the threshold of the other half.

    Every second pair of each answer is in one half, so that both have the same number of them.

    Returns:
        The two thresholds, and for each pair whether its answer is correct.
    """
    yes_N = np.asarray(same, bool)
    half_N = np.zeros(len(yes_N), np.int64)
    for answer in (True, False):
        those = np.flatnonzero(yes_N == answer)
        half_N[those] = np.arange(len(those)) % 2
    correct_N = np.zeros(len(yes_N), bool)
    thresholds = []
    for half in (0, 1):
        train, test = half_N == half, half_N != half
        thresholds.append(best_threshold(cosines_N[train], yes_N[train].tolist()))
        correct_N[test] = (cosines_N[test] >= thresholds[-1]) == yes_N[test]
    return thresholds, correct_N


def _score_answers(
    cosines_N: Array, same: Sequence[bool], train: tuple[Array, Sequence[bool]] | None
) -> tuple[ResultRow, BoolArray]:
    yes_N = np.asarray(same, bool)
    if train is None:
        thresholds, correct_N = cross_fitted(cosines_N, same)
    else:
        thresholds = [best_threshold(*train)]
        correct_N = (cosines_N >= thresholds[0]) == yes_N
    accuracy = float(correct_N.mean())
    score: ResultRow = {
        "accuracy": accuracy,
        "standard_error": math.sqrt(accuracy * (1 - accuracy) / len(yes_N)),
        "auc": area_under_curve(cosines_N, same),
        "thresholds": thresholds,
        "cosine same": float(cosines_N[yes_N].mean()),
        "cosine different": float(cosines_N[~yes_N].mean()),
    }
    return score, correct_N


# -- ratings -------------------------------------------------------------------------------------


def _score_ratings(cosines_N: Array, data: PairDataset) -> ResultRow:
    scores: ResultRow = {}
    for name, those_N in _subsets(data).items():
        ratings_N = np.asarray(data.ratings)[those_N]
        rho = spearman(cosines_N[those_N], ratings_N) if those_N.sum() > 2 else None
        error = None if rho is None else spearman_error(rho, len(ratings_N))
        scores[name] = {"spearman": rho, "standard_error": error}
    return scores


def _subsets(data: PairDataset) -> dict[str, BoolArray]:
    same_N = np.array([pair.same_word for pair in data.pairs], bool)
    return {"all": np.ones(len(same_N), bool), "same": same_N, "different": ~same_N}


def rater_agreement(raters: Sequence[Sequence[float]]) -> float | None:
    """Return the mean correlation of each person's ratings with the mean of the others'."""
    if not raters:
        return None
    ratings = np.array(raters, np.float64)
    correlations = []
    for k in range(ratings.shape[1]):
        rho = spearman(ratings[:, k], np.delete(ratings, k, axis=1).mean(1))
        if rho is not None:
            correlations.append(rho)
    return float(np.mean(correlations)) if correlations else None


# -- the measurement -----------------------------------------------------------------------------


def measure_similarity(
    elmo: Elmo,
    data: PairDataset,
    signature: Mapping[str, object],
    *,
    train: PairDataset | None = None,
    context: ContextChoice = "word",
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> Measurement:
    """Return the scores of the trained and the untrained network as a measurement.

    Args:
        elmo: The model.
        data: The pairs.
        signature: What determines the measurement; see `results.make_signature`.
        train: Other pairs to choose the threshold on; the other half of `data` by default.
        context: `"sentence"` compares the word and the mean of its sentence, `"word"` the word
            alone.
        seed: Random seed of the untrained network.
        progress: Called with the number of pairs done and of all pairs.
    """
    _check(data, train)
    untrained = Elmo(untrained_copy(elmo.bilm, seed), threads=elmo.threads)
    layers = [*map(str, range(elmo.layers)), ALL]
    total = 2 * (len(data.pairs) + (len(train.pairs) if train else 0))
    done = 0
    scores: list[ResultRow] = []
    correct: dict[tuple[str, str], BoolArray] = {}
    for network, model in zip(NETWORKS, (elmo, untrained), strict=True):
        cosines = []
        for dataset in (data, *([train] if train else [])):

            def report(count: int, _: int | None, before: int = done) -> None:
                progress(before + count, total)

            cosines.append(pair_cosines(model, dataset.pairs, report, context))
            done += len(dataset.pairs)
        for j, layer in enumerate(layers):
            if data.answers:
                trained_on = (cosines[1][j], train.answers) if train else None
                score, correct[network, layer] = _score_answers(
                    cosines[0][j], data.answers, trained_on
                )
            else:
                score = _score_ratings(cosines[0][j], data)
            scores.append({"network": network, "layer": layer, **score})
    numbers: ResultRow = {
        "asked": "answers" if data.answers else "ratings",
        "pairs": len(data.pairs),
    }
    if data.answers:
        lower, upper = correct["trained", "1"], correct["trained", layers[-2]]
        comparison = compare_paired(upper, lower)
        numbers["same"] = sum(data.answers)
        numbers["threshold from"] = len(train.pairs) if train else "the other half"
        numbers["upper_against_lower"] = {
            "upper": layers[-2],
            "lower": "1",
            **asdict(comparison),
            "difference": comparison.difference,
            "standard_error": comparison.standard_error,
        }
    else:
        numbers["sizes"] = {name: int(those_N.sum()) for name, those_N in _subsets(data).items()}
        numbers["people"] = rater_agreement(data.raters)
    return make_measurement("similarity", signature, **numbers, scores=scores)


def _check(data: PairDataset, train: PairDataset | None) -> None:
    if not data.answers:
        if train is not None:
            raise InputError(
                "ratings are compared by rank and need no threshold; expected no pairs to train on"
            )
        if len(data.pairs) < MIN_PAIRS:
            raise InputError(
                f"there are {len(data.pairs)} pairs with ratings; expected {MIN_PAIRS} or more"
            )
        return
    if train is not None and not train.answers:
        raise InputError("the pairs to train on have ratings; expected yes/no answers")
    for name, each in (("the pairs", data), ("the pairs to train on", train)):
        if each is not None and min(sum(each.answers), each.answers.count(False)) < MIN_PAIRS:
            raise InputError(
                f"{name} have {sum(each.answers)} that mean the same and "
                f"{each.answers.count(False)} that do not; expected {MIN_PAIRS} or more of each"
            )
