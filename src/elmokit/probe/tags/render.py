"""Tables and figures of the tag probe, rendered from its measurement alone."""

from __future__ import annotations

from elmokit.figures import Bar, BarGroup, ReferenceLine, draw_bar_chart
from elmokit.probe.layer_bars import NETWORKS, layer_bars, zoomed_axis
from elmokit.probe.results import (
    Figure,
    Measurement,
    argmax,
    layer_name,
    network_layer_name,
    percent,
)
from elmokit.probe.tables import Table

ALL = "all"
"""Name of all layers side by side."""
FREQUENT = "most frequent"
"""Name of the baseline without a network: the most frequent tag of each word."""
SUBSETS = {"all": "all words", "ambiguous": "ambiguous words", "new": "new words"}
"""Subsets of a test set's words, by their keys in the measurement."""
SUBSET_DEFINITIONS = {
    "ambiguous": "Words with more than one tag in the training set",
    "new": "Words that are not in the training set",
}


def render_tables(measurement: Measurement) -> list[Table]:
    """Return the accuracies by layer, one table per subset, and the comparison of two layers."""
    tables = [
        _scores_table(measurement, subset) for subset in SUBSETS if _has_scores(measurement, subset)
    ]
    if measurement["lower_against_upper"]:
        tables.append(_comparison_table(measurement))
    return tables


def _scores_table(measurement: Measurement, subset: str) -> Table:
    sets = _sets(measurement)
    layers = _layers(measurement)
    row_keys = [
        (FREQUENT, ""),
        *(("untrained", j) for j in layers),
        *(("trained", j) for j in layers),
    ]
    values = _values(measurement, subset)
    rows, bold = [], []
    for network, layer in row_keys:
        cells = (percent(values.get((network, layer, *each))) for each in sets)
        rows.append([_row_name(network, layer), *cells])
    single = [i for i, row in enumerate(row_keys) if row[0] == "trained" and row[1] != ALL]
    for c, each in enumerate(sets):
        scores = [values.get((*row_keys[i], *each)) for i in single]
        if None not in scores:
            bold.append((single[argmax([float(s or 0) for s in scores])], c + 1))
    return Table(
        f"Tagging accuracy in percent by layer: {SUBSETS[subset]}",
        ["", *(f"{column} {test}" for column, test in sets)],
        rows,
        note=_scores_note(measurement, subset),
        bold=bold,
    )


def _scores_note(measurement: Measurement, subset: str) -> str:
    if subset != "all":
        counts = dict.fromkeys(  # a word is new whatever the column: name the test set once
            f"{each[subset]:,} of {test['words']:,} ({test['name'] if subset == 'new' else name})"
            for test in measurement["tests"]
            for column, each in test["columns"].items()
            for name in [f"{column} {test['name']}"]
        )
        return f"{SUBSET_DEFINITIONS[subset]}: {', '.join(counts)}."
    train = measurement["train"]
    words = ", ".join(f"{test['words']:,} words of {test['name']}" for test in measurement["tests"])
    lines = [
        f"A linear classifier on frozen vectors, trained on {train['words']:,} words and "
        f"evaluated on {words}. Bold: the best single layer."
    ]
    unseen = [
        f"{each['unseen tags']:,} in {test['name']} ({column})"
        for test in measurement["tests"]
        for column, each in test["columns"].items()
        if each["unseen tags"]
    ]
    if unseen:
        lines.append(f"Words whose tag is not in training count as wrong: {', '.join(unseen)}.")
    return " ".join(lines)


def _comparison_table(measurement: Measurement) -> Table:
    comparisons = measurement["lower_against_upper"]
    lower, upper = layer_name(comparisons[0]["lower"]), layer_name(comparisons[0]["upper"])
    values = _values(measurement, "all")
    rows = []
    for one in comparisons:
        key = (one["column"], one["test"])
        error = one["standard_error"]
        rows.append(
            [
                f"{one['column']} {one['test']}",
                percent(values["trained", one["lower"], *key]),
                percent(values["trained", one["upper"], *key]),
                f"{100 * one['difference']:+.2f} ± {100 * error:.2f}",
                f"{one['only_first']:,}",
                f"{one['only_second']:,}",
            ]
        )
    columns = ["", lower, upper, "difference", f"only {lower} correct", f"only {upper} correct"]
    note = (
        "Accuracy in percent. The last two columns count words. ± is one standard error of the "
        "difference, from the same words."
    )
    return Table("The lower LSTM layer compared with the upper one", columns, rows, note=note)


def render_figures(measurement: Measurement) -> list[Figure]:
    """Return two figures per column of tags: accuracy by layer, and by subset of the words."""
    figures = []
    for column in dict.fromkeys(column for column, _ in _sets(measurement)):
        figures.append(Figure(column, _layers_figure(measurement, column)))
        figures.append(Figure(f"{column}-words", _subsets_figure(measurement, column)))
    return figures


def _layers_figure(measurement: Measurement, column: str) -> str:
    values = _values(measurement, "all")
    name = measurement["tests"][0]["name"]
    accuracies = {
        (network, layer): 100 * values[network, layer, column, name]
        for network in NETWORKS
        for layer in _layers(measurement)
    }
    mark = ReferenceLine("the word's most frequent tag", 100 * values[FREQUENT, "", column, name])
    title = f"{column}: accuracy of a linear tagger on each layer ({name})"
    return layer_bars(title, _layers(measurement), accuracies, [mark])


def _subsets_figure(measurement: Measurement, column: str) -> str:
    name = measurement["tests"][0]["name"]
    sizes = measurement["tests"][0]["columns"][column]
    all_layers = _layers(measurement)
    groups = []
    for subset, title in SUBSETS.items():
        values = _values(measurement, subset)
        by_layer = {layer_name(j): values.get(("trained", j, column, name)) for j in all_layers}
        drawn = [Bar(layer, 100 * value) for layer, value in by_layer.items() if value is not None]
        if drawn:
            groups.append(BarGroup(title, drawn, note=f"{sizes[subset]:,} words"))
    return draw_bar_chart(
        f"{column}: accuracy on all, ambiguous and new words ({name})",
        groups,
        **zoomed_axis(bar.value for group in groups for bar in group.bars),
        colors=[2, 0, 3, 1, *range(len(all_layers))],
    )


def _sets(measurement: Measurement) -> list[tuple[str, str]]:
    """Return the pairs of a column of tags and a test set, as the columns of a table."""
    return list(dict.fromkeys((score["column"], score["test"]) for score in measurement["scores"]))


def _layers(measurement: Measurement) -> list[str]:
    scores = measurement["scores"]
    return list(dict.fromkeys(s["layer"] for s in scores if s["network"] != FREQUENT))


def _values(measurement: Measurement, subset: str) -> dict[tuple[str, str, str, str], float]:
    """Return the accuracies on a subset, by network, layer, column and test set."""
    return {
        (s["network"], s["layer"], s["column"], s["test"]): s[subset]
        for s in measurement["scores"]
        if s[subset] is not None
    }


def _has_scores(measurement: Measurement, subset: str) -> bool:
    return any(score[subset] is not None for score in measurement["scores"])


def _row_name(network: str, layer: str) -> str:
    if network == FREQUENT:
        return "the word's most frequent tag"
    return network_layer_name(network, layer)


def headline(measurement: Measurement) -> tuple[str, str] | None:
    """Return the accuracy of the best single layer."""
    column, test = _sets(measurement)[0]
    values = _values(measurement, "all")
    layers = [j for j in _layers(measurement) if j != ALL]
    scores = [values["trained", j, column, test] for j in layers]
    top = argmax(scores)
    return f"{100 * scores[top]:.1f} %", f"{column} tagging accuracy from {layer_name(layers[top])}"
