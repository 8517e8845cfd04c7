"""What the tag probe found, for readers: tables and pictures, made of the measurement alone."""

from __future__ import annotations

from elmokit.figures import Bar, Group, Mark, bars
from elmokit.probe.layer_bars import NETWORKS, cut_axis, layer_bars
from elmokit.probe.results import Json, Picture, best, layer_name, network_layer_name, percent
from elmokit.probe.tables import Table

ALL = "all"
"""The layers side by side."""
FREQUENT = "most frequent"
"""The network that is none: the tag that a word has most often."""
KINDS = {"all": "all words", "ambiguous": "ambiguous words", "new": "new words"}
"""Which words are counted: apart from the rest, those whose context matters."""
MEANS = {
    "ambiguous": "Words that have more than one tag in training",
    "new": "Words that are not in training",
}


def tables(found: Json) -> list[Table]:
    """All words, those whose context matters, and the lower layer against the upper one."""
    shown = [_scores_table(found, kind) for kind in KINDS if _counted(found, kind)]
    if found["lower_against_upper"]:
        shown.append(_compared_table(found))
    return shown


def _scores_table(found: Json, kind: str) -> Table:
    sets = _sets(found)
    layers = _layers(found)
    rows_of = [
        (FREQUENT, ""),
        *(("untrained", j) for j in layers),
        *(("trained", j) for j in layers),
    ]
    values = _values(found, kind)
    rows, bold = [], []
    for network, layer in rows_of:
        cells = (percent(values.get((network, layer, *each))) for each in sets)
        rows.append([_row_name(network, layer), *cells])
    single = [i for i, row in enumerate(rows_of) if row[0] == "trained" and row[1] != ALL]
    for c, each in enumerate(sets):
        scores = [values.get((*rows_of[i], *each)) for i in single]
        if None not in scores:
            bold.append((single[best([float(s or 0) for s in scores])], c + 1))
    return Table(
        f"Tags by layer, % right: {KINDS[kind]}",
        ["", *(f"{column} {test}" for column, test in sets)],
        rows,
        note=_scores_note(found, kind),
        bold=bold,
    )


def _scores_note(found: Json, kind: str) -> str:
    if kind != "all":
        counts = dict.fromkeys(  # a word is new whatever its tag: say it once
            f"{each[kind]:,} of {test['words']:,} ({test['name'] if kind == 'new' else name})"
            for test in found["tests"]
            for column, each in test["columns"].items()
            for name in [f"{column} {test['name']}"]
        )
        return f"{MEANS[kind]}: {', '.join(counts)}."
    train = found["train"]
    words = ", ".join(f"{test['words']:,} of {test['name']}" for test in found["tests"])
    lines = [
        f"A linear classifier on frozen vectors, learned from {train['words']:,} words; "
        f"scored on {words}. Bold: the best single layer."
    ]
    unseen = [
        f"{each['unseen tags']:,} in {test['name']} ({column})"
        for test in found["tests"]
        for column, each in test["columns"].items()
        if each["unseen tags"]
    ]
    if unseen:
        lines.append(f"Words whose tag is not in training count as wrong: {', '.join(unseen)}.")
    return " ".join(lines)


def _compared_table(found: Json) -> Table:
    every = found["lower_against_upper"]
    lower, upper = layer_name(every[0]["lower"]), layer_name(every[0]["upper"])
    values = _values(found, "all")
    rows = []
    for one in every:
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
    columns = ["", lower, upper, "difference", f"only {lower} right", f"only {upper} right"]
    note = "± is one standard error of the difference on the same words."
    return Table("The lower LSTM layer against the upper one", columns, rows, note=note)


def pictures(found: Json) -> list[Picture]:
    """For each set of tags, on the first test set: the layers, and what words they are good at."""
    shown = []
    for column in dict.fromkeys(column for column, _ in _sets(found)):
        shown.append(Picture(column, _layers_picture(found, column)))
        shown.append(Picture(f"{column}-words", _words_picture(found, column)))
    return shown


def _layers_picture(found: Json, column: str) -> str:
    values = _values(found, "all")
    name = found["tests"][0]["name"]
    shown = {
        (network, layer): 100 * values[network, layer, column, name]
        for network in NETWORKS
        for layer in _layers(found)
    }
    mark = Mark("the word's most frequent tag", 100 * values[FREQUENT, "", column, name])
    title = f"{column}: what a linear tagger tells from each layer ({name})"
    return layer_bars(title, _layers(found), shown, [mark])


def _words_picture(found: Json, column: str) -> str:
    name = found["tests"][0]["name"]
    sizes = found["tests"][0]["columns"][column]
    groups = []
    for kind, words in KINDS.items():
        values = _values(found, kind)
        layers = {layer_name(j): values.get(("trained", j, column, name)) for j in _layers(found)}
        shown = [Bar(layer, 100 * value) for layer, value in layers.items() if value is not None]
        if shown:
            groups.append(Group(words, shown, note=f"{sizes[kind]:,} words"))
    return bars(
        f"{column}: for which words context matters ({name})",
        groups,
        **cut_axis(bar.value for group in groups for bar in group.bars),
        fill=[2, 0, 3, 1, *range(len(_layers(found)))],
    )


def _sets(found: Json) -> list[tuple[str, str]]:
    """Tags and test sets, as the columns of a table."""
    return list(dict.fromkeys((score["column"], score["test"]) for score in found["scores"]))


def _layers(found: Json) -> list[str]:
    return list(dict.fromkeys(s["layer"] for s in found["scores"] if s["network"] != FREQUENT))


def _values(found: Json, kind: str) -> dict[tuple[str, str, str, str], float]:
    return {
        (s["network"], s["layer"], s["column"], s["test"]): s[kind]
        for s in found["scores"]
        if s[kind] is not None
    }


def _counted(found: Json, kind: str) -> bool:
    return any(score[kind] is not None for score in found["scores"])


def _row_name(network: str, layer: str) -> str:
    if network == FREQUENT:
        return "the word's most frequent tag"
    return network_layer_name(network, layer)


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember: the best single layer."""
    column, test = _sets(found)[0]
    values = _values(found, "all")
    layers = [j for j in _layers(found) if j != ALL]
    scores = [values["trained", j, column, test] for j in layers]
    top = best(scores)
    return f"{100 * scores[top]:.1f} %", f"of {column} tags right from {layer_name(layers[top])}"
