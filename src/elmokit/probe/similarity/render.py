"""What the similarity probe found, for readers: made of the measurement alone."""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.figures import Mark
from elmokit.probe.layer_bars import NETWORKS, layer_bars
from elmokit.probe.results import Json, Picture, best, layer_name, network_layer_name, percent
from elmokit.probe.tables import Table

ALL = "all"
"""The layers side by side."""
SUBSETS = {"all": "all pairs", "same": "same word", "different": "different words"}


def tables(found: Json) -> list[Table]:
    """Layer by layer."""
    return [_answers_table(found) if found["asked"] == "answers" else _ratings_table(found)]


def _rows(found: Json) -> list[Json]:
    """Untrained layers first, as what the trained ones have to be better than."""
    return sorted(found["scores"], key=lambda score: NETWORKS.index(score["network"]), reverse=True)


def _bold(rows: Sequence[Json], values: Sequence[float | None], first: int) -> int | None:
    """The row of the best single layer of the trained network."""
    single = [
        i
        for i, row in enumerate(rows)
        if row["network"] == "trained" and row["layer"] != ALL and values[i] is not None
    ]
    return first + single[best([float(values[i] or 0) for i in single])] if single else None


def _chance(found: Json) -> float:
    """What always the same answer gives."""
    share: float = found["same"] / found["pairs"]
    return max(share, 1 - share)


def _answers_table(found: Json) -> Table:
    rows = _rows(found)
    cells = [["always the same answer", f"{100 * _chance(found):.1f}", "50.0", "", "", ""]]
    for score in rows:
        cuts = " / ".join(f"{cut:.2f}" for cut in score["thresholds"])
        cells.append(
            [
                network_layer_name(score["network"], score["layer"]),
                f"{100 * score['accuracy']:.1f}",
                f"{100 * score['auc']:.1f}",
                f"{score['cosine same']:.3f}",
                f"{score['cosine different']:.3f}",
                cuts,
            ]
        )
    bold = []
    for column, name in ((1, "accuracy"), (2, "auc")):
        row = _bold(rows, [score[name] for score in rows], 1)
        if row is not None:
            bold.append((row, column))
    return Table(
        "The same word in two contexts: does it mean the same?",
        ["", "% right", "AUC", "cosine if same", "if not", "yes from"],
        cells,
        note=_answers_note(found),
        bold=bold,
    )


def _answers_note(found: Json) -> str:
    chosen = found["threshold from"]
    how = (
        "on the other half of the pairs"
        if isinstance(chosen, str)
        else f"on {chosen:,} pairs for training"
    )
    one = found["upper_against_lower"]
    error = 100 * max(score["standard_error"] for score in found["scores"])
    note = (
        f"{found['pairs']:,} pairs, {found['same']:,} of the same meaning. Yes from a cosine on "
        f"that was chosen {how}; AUC needs none (50: chance). "
        f"A score's standard error is at most {error:.1f}."
    )
    if one["upper"] == one["lower"]:
        return note
    return (
        f"{note} {layer_name(one['upper'])} − {layer_name(one['lower'])}: "
        f"{100 * one['difference']:+.1f} ± {100 * one['standard_error']:.1f} (only the upper "
        f"right: {one['only_first']:,}, only the lower: {one['only_second']:,})."
    )


def _ratings_table(found: Json) -> Table:
    rows = _rows(found)
    subsets = [name for name in SUBSETS if found["sizes"][name] and _any(rows, name)]
    if found["sizes"]["all"] in (found["sizes"]["same"], found["sizes"]["different"]):
        subsets = ["all"]
    cells, bold = [], []
    for score in rows:
        shown = (score[name]["spearman"] for name in subsets)
        cells.append([network_layer_name(score["network"], score["layer"]), *map(percent, shown)])
    for column, name in enumerate(subsets, start=1):
        row = _bold(rows, [score[name]["spearman"] for score in rows], 0)
        if row is not None:
            bold.append((row, column))
    note = "Spearman's ρ × 100 between cosines and what people said. "
    note += ", ".join(f"{SUBSETS[name]}: {found['sizes'][name]:,}" for name in subsets) + "."
    errors = [score["all"]["standard_error"] for score in found["scores"]]
    if known := [error for error in errors if error is not None]:
        note += f" Its standard error over all pairs is at most {100 * max(known):.1f}."
    if found["people"] is not None:
        note += f" One person against the others: {100 * found['people']:.1f}."
    columns = ["", *(SUBSETS[name] for name in subsets)]
    return Table("Words in context: as alike as people say?", columns, cells, note=note, bold=bold)


def _any(rows: Sequence[Json], subset: str) -> bool:
    return any(row[subset]["spearman"] is not None for row in rows)


def pictures(found: Json) -> list[Picture]:
    """Layer by layer."""
    if found["asked"] == "answers":
        title = "Does a word mean the same in two contexts?"
        right = {_key(score): 100 * score["accuracy"] for score in found["scores"]}
        area = {_key(score): 100 * score["auc"] for score in found["scores"]}
        always = Mark("always the same answer", 100 * _chance(found))
        return [
            Picture("", layer_bars(title, _layers(found), right, [always])),
            Picture(
                "auc",
                layer_bars(
                    f"{title} Without a threshold",
                    _layers(found),
                    area,
                    [Mark("chance", 50.0)],
                    "area under the curve × 100",
                ),
            ),
        ]
    values = {
        _key(score): 100 * score["all"]["spearman"]
        for score in found["scores"]
        if score["all"]["spearman"] is not None
    }
    people = found["people"]
    marks = [] if people is None else [Mark("one person against the others", 100 * people)]
    title, unit = "Are words in context as alike as people say?", "Spearman's ρ × 100"
    return [Picture("", layer_bars(title, _layers(found), values, marks, unit))] if values else []


def _key(score: Json) -> tuple[str, str]:
    return score["network"], score["layer"]


def _layers(found: Json) -> list[str]:
    return list(dict.fromkeys(score["layer"] for score in found["scores"]))


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember: the best single layer, where there were yes and no."""
    if found["asked"] != "answers":
        return None
    rows = [row for row in found["scores"] if row["network"] == "trained" and row["layer"] != ALL]
    top = rows[best([row["auc"] for row in rows])]
    return f"{100 * top['auc']:.1f} %", f"AUC of “the same sense?” from {layer_name(top['layer'])}"
