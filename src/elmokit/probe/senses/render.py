"""What the sense probe found, for readers: tables and pictures, made of the measurement alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elmokit.figures import Bar, Group, Mark, bars
from elmokit.probe.layer_bars import cut_axis, layer_bars
from elmokit.probe.results import Json, Picture, best, layer_name, network_layer_name, percent
from elmokit.probe.tables import Table

ALL = "all"
"""The layers side by side."""
WHOLE = "ALL"
"""All sets as one: the name that the evaluation framework gives it."""
TRAINED, UNTRAINED = "trained", "untrained"
ROWS = ("", UNTRAINED, TRAINED)
"""First the rules, last what it is about."""
FIRST, FREQUENT = "first", "frequent"
"""Rules that need no network."""
PARTS = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}
SHORT = {
    "senseval2": "SE2",
    "senseval3": "SE3",
    "semeval2007": "SE07",
    "semeval2013": "SE13",
    "semeval2015": "SE15",
    "adjectives": "adj.",
    "adverbs": "adv.",
}
"""As papers write the names in tables."""

Column = tuple[str, Sequence[float | None], int]
"""Its name, a share for each row, and of how many instances."""


def tables(found: Json) -> list[Table]:
    """By kind of instance, by set, and the top layer against the others."""
    instances, corpus = found["instances"], found["corpus"]
    rows = sorted(found["rows"], key=lambda row: ROWS.index(row["network"]))
    whole: Column = (WHOLE, [row["f1"] for row in rows], instances["all"])
    kinds: list[Column] = [whole]
    kinds += [(kind, [row[kind] for row in rows], instances[kind]) for kind in ("seen", "choice")]
    kinds += [
        (PARTS[part], [row["parts"][part] for row in rows], count)
        for part, count in instances["parts"].items()
    ]
    note = (
        f"A sense's vector is its mean over {corpus['name']} ({corpus['uses']:,} uses in "
        f"{corpus['words']:,} words; {corpus['skipped']:,} senses that WordNet has no longer are "
        "left out). The nearest by cosine is taken; of equally near ones the more frequent, then "
        "WordNet's order; for a lemma that is not there WordNet's first sense. Characters know "
        "the form of a word, not its context. seen: the corpus has the lemma; choice: in two "
        "senses or more, so that vectors decide. Bold: the best single layer."
    )
    shown = [_scores_table(rows, "Word senses by layer, F1 in %", kinds, note)]
    if len(instances["sets"]) > 1:
        sets = [
            (name, [row["sets"][name] for row in rows], count)
            for name, count in sorted(instances["sets"].items(), key=_by_year)
            if name != WHOLE
        ]
        shown.append(_scores_table(rows, "Word senses by set, F1 in %", [*sets, whole]))
    if found["pairs"]:
        shown.append(_compared_table(found))
    return shown


def _scores_table(
    ways: Sequence[Json], title: str, columns: Sequence[Column], note: str = ""
) -> Table:
    rows = [(way["network"], way["layer"]) for way in ways]
    single = [i for i, row in enumerate(rows) if row[0] == TRAINED and row[1] != ALL]
    body, bold = [], []
    for r, row in enumerate(rows):
        body.append([_row_name(*row), *(percent(shares[r]) for _, shares, _ in columns)])
    body.append(["instances", *(f"{count:,}" for _, _, count in columns)])
    for c, (_, shares, _) in enumerate(columns, start=1):
        scores = [shares[i] or 0.0 for i in single]
        if len(set(scores)) > 1:
            bold.append((single[best(scores)], c))
    return Table(
        title, ["", *(SHORT.get(name, name) for name, _, _ in columns)], body, note, bold=bold
    )


def _compared_table(found: Json) -> Table:
    pairs = found["pairs"]
    top = layer_name(pairs[0]["first"][1])
    rows, bold = [], []
    for r, pair in enumerate(pairs):
        difference, error = 100 * pair["difference"], 100 * pair["standard_error"]
        counts = (f"{pair[name]:,}" for name in ("only_first", "only_second"))
        rows.append([_row_name(*pair["second"]), f"{difference:+.1f} ± {error:.1f}", *counts])
        if abs(difference) > 2 * error:
            bold.append((r, 1))
    return Table(
        f"{top} against the others, points of F1",
        ["", "difference", f"only {top} right", "only the other"],
        rows,
        f"± is one standard error of the difference on the same {found['instances']['all']:,} "
        "instances; bold: more than two.",
        bold=bold,
    )


def pictures(found: Json) -> list[Picture]:
    """By layer, and by part of speech."""
    rows = {(row["network"], row["layer"]): row for row in found["rows"]}
    layers = [layer for network, layer in rows if network == TRAINED]
    first = rows["", FIRST]
    by_layer = layer_bars(
        "Word senses: the nearest sense vector by layer",
        layers,
        {way: 100 * row["f1"] for way, row in rows.items() if way[0]},
        [Mark("WordNet's first sense", 100 * first["f1"])],
        f"F1 in %, {found['instances']['all']:,} instances",
    )
    shown: Mapping[str, Json] = {
        **{layer_name(layer): rows[TRAINED, layer] for layer in layers if layer != ALL},
        "WordNet's first sense": first,
    }
    groups = [
        Group(
            PARTS[part],
            [Bar(name, 100 * row["parts"][part]) for name, row in shown.items()],
            f"{count:,} instances",
        )
        for part, count in found["instances"]["parts"].items()
    ]
    axis = cut_axis((bar.value for group in groups for bar in group.bars), "F1 in %")
    # Gray is for what has no context, the second color for what is no layer.
    fill = [(2, 0, 3, 4, 5)[i % 5] for i in range(len(shown) - 1)]
    by_part = bars("Word senses by part of speech", groups, **axis, fill=[*fill, 1])
    return [Picture("", by_layer), Picture("parts", by_part)]


def _by_year(item: tuple[str, int]) -> int:
    """The sets that papers show in the order in which they do, others behind them."""
    return [*SHORT].index(item[0]) if item[0] in SHORT else len(SHORT)


def _row_name(network: str, layer: str) -> str:
    if not network:
        return {FIRST: "WordNet's first sense", FREQUENT: "most frequent sense"}[layer]
    return network_layer_name(network, layer)


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember: the best single layer."""
    rows = [row for row in found["rows"] if row["network"] == TRAINED and row["layer"] != ALL]
    if not rows:
        return None
    top = rows[best([row["f1"] for row in rows])]
    return f"{100 * top['f1']:.1f}", f"F1 of word senses from {layer_name(top['layer'])}"
