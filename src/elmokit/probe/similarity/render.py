"""Tables and figures of the similarity probe, rendered from its measurement alone."""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.figures import ReferenceLine
from elmokit.probe.layer_bars import NETWORKS, layer_bars
from elmokit.probe.results import (
    Figure,
    Measurement,
    ResultRow,
    argmax,
    layer_name,
    network_layer_name,
    percent,
    with_context,
)
from elmokit.probe.tables import Table

ALL = "all"
"""Name of all layers side by side."""
SUBSETS = {"all": "all pairs", "same": "same word", "different": "different words"}
"""Subsets of the pairs with ratings, by their keys in the measurement."""


def render_tables(measurement: Measurement) -> list[Table]:
    """Return the table of the scores by layer."""
    has_answers = measurement["asked"] == "answers"
    return [_answers_table(measurement) if has_answers else _ratings_table(measurement)]


def _rows(measurement: Measurement) -> list[ResultRow]:
    """Return the scores, those of the untrained network first."""
    scores = measurement["scores"]
    return sorted(scores, key=lambda score: NETWORKS.index(score["network"]), reverse=True)


def _best_row(rows: Sequence[ResultRow], values: Sequence[float | None], first: int) -> int | None:
    """Return the row of the trained network's best single layer in a table."""
    single = [
        i
        for i, row in enumerate(rows)
        if row["network"] == "trained" and row["layer"] != ALL and values[i] is not None
    ]
    return first + single[argmax([float(values[i] or 0) for i in single])] if single else None


def _majority_accuracy(measurement: Measurement) -> float:
    """Return the accuracy of always giving the more frequent answer."""
    share: float = measurement["same"] / measurement["pairs"]
    return max(share, 1 - share)


def _answers_table(measurement: Measurement) -> Table:
    scores = _rows(measurement)
    majority = f"{100 * _majority_accuracy(measurement):.1f}"
    rows = [["always the same answer", majority, "50.0", "", "", ""]]
    for score in scores:
        rows.append(
            [
                network_layer_name(score["network"], score["layer"]),
                f"{100 * score['accuracy']:.1f}",
                f"{100 * score['auc']:.1f}",
                f"{score['cosine same']:.3f}",
                f"{score['cosine different']:.3f}",
                " / ".join(f"{threshold:.2f}" for threshold in score["thresholds"]),
            ]
        )
    bold = []
    for column, name in ((1, "accuracy"), (2, "auc")):
        row = _best_row(scores, [score[name] for score in scores], 1)
        if row is not None:
            bold.append((row, column))
    title = "Does a word mean the same in two contexts? Accuracy and AUC in percent by layer"
    return Table(
        with_context(title, measurement),
        ["", "accuracy", "AUC", "cosine if same", "if different", "threshold"],
        rows,
        note=_answers_note(measurement),
        bold=bold,
    )


def _answers_note(measurement: Measurement) -> str:
    source = measurement["threshold from"]
    chosen = (
        "on the other half of the pairs"
        if isinstance(source, str)
        else f"on {source:,} training pairs"
    )
    compared = measurement["upper_against_lower"]
    error = 100 * max(score["standard_error"] for score in measurement["scores"])
    note = (
        f"{measurement['pairs']:,} pairs, {measurement['same']:,} with the same meaning. The "
        f"answer is yes if the cosine reaches a threshold, which was chosen {chosen}; AUC needs no "
        "threshold (chance is 50). Bold: the best single layer. The standard error of the "
        f"accuracy is at most {error:.1f}."
    )
    if compared["upper"] == compared["lower"]:
        return note
    upper, lower = layer_name(compared["upper"]), layer_name(compared["lower"])
    return (
        f"{note} Accuracy of {upper} minus {lower}: "
        f"{100 * compared['difference']:+.1f} ± {100 * compared['standard_error']:.1f} points "
        f"(only {upper} correct: {compared['only_first']:,} pairs, only {lower} correct: "
        f"{compared['only_second']:,})."
    )


def _ratings_table(measurement: Measurement) -> Table:
    scores, sizes = _rows(measurement), measurement["sizes"]
    subsets = [name for name in SUBSETS if sizes[name] and _has_scores(scores, name)]
    if sizes["all"] in (sizes["same"], sizes["different"]):
        subsets = ["all"]
    rows, bold = [], []
    for score in scores:
        values = (percent(score[name]["spearman"]) for name in subsets)
        rows.append([network_layer_name(score["network"], score["layer"]), *values])
    for column, name in enumerate(subsets, start=1):
        row = _best_row(scores, [score[name]["spearman"] for score in scores], 0)
        if row is not None:
            bold.append((row, column))
    note = "Spearman's ρ × 100 between cosines and human ratings. Number of pairs: "
    note += ", ".join(f"{SUBSETS[name]} {sizes[name]:,}" for name in subsets) + "."
    errors = [score["all"]["standard_error"] for score in measurement["scores"]]
    if known := [error for error in errors if error is not None]:
        note += f" The standard error over all pairs is at most {100 * max(known):.1f}."
    if measurement["people"] is not None:
        note += f" One person against the others: {100 * measurement['people']:.1f}."
    title = with_context(
        "Similarity of words in context: correlation with human ratings by layer", measurement
    )
    columns = ["", *(SUBSETS[name] for name in subsets)]
    return Table(title, columns, rows, note=note, bold=bold)


def _has_scores(rows: Sequence[ResultRow], subset: str) -> bool:
    return any(row[subset]["spearman"] is not None for row in rows)


def render_figures(measurement: Measurement) -> list[Figure]:
    """Return the scores by layer: accuracy and AUC of answers, or the correlation of ratings."""
    scores, layers = measurement["scores"], _layers(measurement)
    if measurement["asked"] == "answers":
        question = "Does a word mean the same in two contexts?"
        title = with_context(question, measurement)
        accuracy = {_key(score): 100 * score["accuracy"] for score in scores}
        auc = {_key(score): 100 * score["auc"] for score in scores}
        majority = ReferenceLine("always the same answer", 100 * _majority_accuracy(measurement))
        chance, unit = ReferenceLine("chance", 50.0), "area under the ROC curve × 100"
        auc_title = with_context(f"{question} Without a threshold", measurement)
        return [
            Figure("", layer_bars(title, layers, accuracy, [majority])),
            Figure("auc", layer_bars(auc_title, layers, auc, [chance], unit)),
        ]
    values = {
        _key(score): 100 * score["all"]["spearman"]
        for score in scores
        if score["all"]["spearman"] is not None
    }
    people = measurement["people"]
    marks = [] if people is None else [ReferenceLine("one person against the others", 100 * people)]
    title = with_context(
        "Similarity of words in context: correlation with human ratings", measurement
    )
    unit = "Spearman's ρ × 100"
    return [Figure("", layer_bars(title, layers, values, marks, unit))] if values else []


def _key(score: ResultRow) -> tuple[str, str]:
    return score["network"], score["layer"]


def _layers(measurement: Measurement) -> list[str]:
    return list(dict.fromkeys(score["layer"] for score in measurement["scores"]))


def headline(measurement: Measurement) -> tuple[str, str] | None:
    """Return the AUC of the best single layer, if the pairs have yes/no answers."""
    if measurement["asked"] != "answers":
        return None
    rows = [
        row for row in measurement["scores"] if row["network"] == "trained" and row["layer"] != ALL
    ]
    top = rows[argmax([row["auc"] for row in rows])]
    name = layer_name(top["layer"])
    meaning = f"AUC of “same meaning in two contexts?” from {name}"
    return f"{100 * top['auc']:.1f} %", with_context(meaning, measurement)
