"""Tables and figures of the sense probe, rendered from its measurement alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elmokit.figures import Bar, BarGroup, ReferenceLine, draw_bar_chart
from elmokit.probe.layer_bars import layer_bars, zoomed_axis
from elmokit.probe.results import (
    Figure,
    Measurement,
    ResultRow,
    argmax,
    layer_name,
    network_layer_name,
    percent,
    pools_sentence,
    with_context,
)
from elmokit.probe.tables import Table

ALL = "all"
"""Name of all layers side by side."""
ALL_SETS = "ALL"
"""Name of the union of all test sets in the evaluation framework."""
TRAINED, UNTRAINED = "trained", "untrained"
NETWORK_ORDER = ("", UNTRAINED, TRAINED)
"""Order of the rows of a table: the baselines without a network, then the networks."""
FIRST, FREQUENT = "first", "frequent"
"""Names of the baselines without a network."""
PARTS = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}
SHORT_NAMES = {
    "senseval2": "SE2",
    "senseval3": "SE3",
    "semeval2007": "SE07",
    "semeval2013": "SE13",
    "semeval2015": "SE15",
    "adjectives": "adj.",
    "adverbs": "adv.",
}
"""Abbreviations of column headers, as in papers."""

Column = tuple[str, Sequence[float | None], int]
"""Header of a column, its value in each row, and the number of instances."""


def render_tables(measurement: Measurement) -> list[Table]:
    """Return F1 by kind of instance, F1 by test set, and the comparison of the top layer."""
    instances, corpus = measurement["instances"], measurement["corpus"]
    rows = sorted(measurement["rows"], key=lambda row: NETWORK_ORDER.index(row["network"]))
    whole: Column = (ALL_SETS, [row["f1"] for row in rows], instances["all"])
    kinds: list[Column] = [whole]
    kinds += [(kind, [row[kind] for row in rows], instances[kind]) for kind in ("seen", "choice")]
    kinds += [
        (PARTS[part], [row["parts"][part] for row in rows], count)
        for part, count in instances["parts"].items()
    ]
    characters = (
        "Characters know the forms of the words of a sentence, not their order."
        if pools_sentence(measurement)
        else "Characters know the form of a word, not its context."
    )
    note = (
        f"The vector of a sense is its mean over {corpus['name']} ({corpus['uses']:,} annotated "
        f"uses in {corpus['words']:,} words; {corpus['skipped']:,} annotations with senses that "
        "are no longer in WordNet are left out). The nearest sense by cosine is chosen; among "
        "equally near ones the most frequent, then WordNet's order decides. A lemma that is not "
        "in the corpus gets WordNet's first sense. "
        f"{characters} seen: the corpus has the lemma; choice: the corpus has it in two or more "
        "senses, so that the vectors decide. Bold: the best single layer."
    )
    title = with_context("Word sense disambiguation by layer, F1 in percent", measurement)
    tables = [_scores_table(rows, title, kinds, note)]
    if len(instances["sets"]) > 1:
        sets = [
            (name, [row["sets"][name] for row in rows], count)
            for name, count in sorted(instances["sets"].items(), key=_set_order)
            if name != ALL_SETS
        ]
        title = with_context("Word sense disambiguation by test set, F1 in percent", measurement)
        tables.append(_scores_table(rows, title, [*sets, whole]))
    if measurement["pairs"]:
        tables.append(_comparison_table(measurement))
    return tables


def _scores_table(
    methods: Sequence[ResultRow], title: str, columns: Sequence[Column], note: str = ""
) -> Table:
    keys = [(method["network"], method["layer"]) for method in methods]
    single = [i for i, key in enumerate(keys) if key[0] == TRAINED and key[1] != ALL]
    rows, bold = [], []
    for r, key in enumerate(keys):
        rows.append([_row_name(*key), *(percent(values[r]) for _, values, _ in columns)])
    rows.append(["instances", *(f"{count:,}" for _, _, count in columns)])
    for c, (_, values, _) in enumerate(columns, start=1):
        scores = [values[i] or 0.0 for i in single]
        if len(set(scores)) > 1:
            bold.append((single[argmax(scores)], c))
    headers = ["", *(SHORT_NAMES.get(name, name) for name, _, _ in columns)]
    return Table(title, headers, rows, note, bold=bold)


def _comparison_table(measurement: Measurement) -> Table:
    pairs = measurement["pairs"]
    top = layer_name(pairs[0]["first"][1])
    rows, bold = [], []
    for r, pair in enumerate(pairs):
        difference, error = 100 * pair["difference"], 100 * pair["standard_error"]
        counts = (f"{pair[name]:,}" for name in ("only_first", "only_second"))
        rows.append([_row_name(*pair["second"]), f"{difference:+.1f} ± {error:.1f}", *counts])
        if abs(difference) > 2 * error:
            bold.append((r, 1))
    return Table(
        with_context(
            f"{top} compared with the other methods, difference in F1 points", measurement
        ),
        ["", "difference", f"only {top} correct", "only the other correct"],
        rows,
        f"± is one standard error of the difference on the same {measurement['instances']['all']:,}"
        " instances; bold: a difference of more than two standard errors. The last two columns "
        "count instances.",
        bold=bold,
    )


def render_figures(measurement: Measurement) -> list[Figure]:
    """Return two figures: F1 by layer, and F1 by part of speech."""
    rows = {(row["network"], row["layer"]): row for row in measurement["rows"]}
    layers = [layer for network, layer in rows if network == TRAINED]
    first = rows["", FIRST]
    by_layer = layer_bars(
        with_context("Word sense disambiguation: the nearest sense vector by layer", measurement),
        layers,
        {key: 100 * row["f1"] for key, row in rows.items() if key[0]},
        [ReferenceLine("WordNet's first sense", 100 * first["f1"])],
        f"F1 in %, {measurement['instances']['all']:,} instances",
    )
    methods: Mapping[str, ResultRow] = {
        **{layer_name(layer): rows[TRAINED, layer] for layer in layers if layer != ALL},
        "WordNet's first sense": first,
    }
    groups = [
        BarGroup(
            PARTS[part],
            [Bar(name, 100 * row["parts"][part]) for name, row in methods.items()],
            f"{count:,} instances",
        )
        for part, count in measurement["instances"]["parts"].items()
    ]
    axis = zoomed_axis((bar.value for group in groups for bar in group.bars), "F1 in %")
    # Gray is for the layer without context, the second color for the baseline.
    fill = [(2, 0, 3, 4, 5)[i % 5] for i in range(len(methods) - 1)]
    title = with_context("Word sense disambiguation by part of speech", measurement)
    by_part = draw_bar_chart(title, groups, **axis, colors=[*fill, 1])
    return [Figure("", by_layer), Figure("parts", by_part)]


def _set_order(item: tuple[str, int]) -> int:
    """Sort key: the test sets that papers report in their usual order, others after them."""
    return [*SHORT_NAMES].index(item[0]) if item[0] in SHORT_NAMES else len(SHORT_NAMES)


def _row_name(network: str, layer: str) -> str:
    if not network:
        return {FIRST: "WordNet's first sense", FREQUENT: "most frequent sense"}[layer]
    return network_layer_name(network, layer)


def headline(measurement: Measurement) -> tuple[str, str] | None:
    """Return the F1 of the best single layer."""
    rows = [row for row in measurement["rows"] if row["network"] == TRAINED and row["layer"] != ALL]
    if not rows:
        return None
    top = rows[argmax([row["f1"] for row in rows])]
    name = layer_name(top["layer"])
    meaning = with_context(f"F1 of word sense disambiguation from {name}", measurement)
    return f"{100 * top['f1']:.1f}", meaning
