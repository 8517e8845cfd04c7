"""What has changed, for readers: tables and pictures, made of the measurement alone."""

from __future__ import annotations

from collections.abc import Mapping

from elmokit.figures import Bar, Cloud, Group, Point, bars, points
from elmokit.probe.excerpt import excerpt
from elmokit.probe.results import Json, Picture, best, layer_name
from elmokit.probe.tables import Table

MEASURES = {"prt": "PRT", "apd": "APD", "excess": "APD − within"}
"""PRT is the default: APD is also large for words that were always used in many ways."""
BARS = 20
"""Words of a picture."""
SURE = 0.05


def tables(found: Json) -> list[Table]:
    """The words by their change, what all layers say, examples; and what people say, if known."""
    made = [_ranking(found), _by_layer(found)]
    if found["spearman"] is not None:
        made.append(_correlation(found))
    shown = [word for word in found["words"] if word["picture"]]
    return [*made, *(table for word in shown for table in _examples(word))]


def _ranking(found: Json) -> Table:
    layer, by = found["layer"], found["by"]
    gold = found["spearman"] is not None
    columns = ["word", "PRT", "chance", "p", "APD", "within", "p", "then", "now"]
    more = (["excess"] if by == "excess" else []) + (["gold"] if gold else [])
    rows, bold = [], []
    for r, word in enumerate(found["words"]):
        one = word["layers"][layer]
        cells = [_named(word)]
        cells += [f"{one['prt']:.3f}", f"{one['prt_by_chance']:.3f}", f"{one['prt_p']:.3f}"]
        within = (one["within_then"] + one["within_now"]) / 2
        cells += [f"{one['apd']:.3f}", f"{within:.3f}", f"{one['apd_p']:.3f}"]
        cells += [f"{word['uses']['then']:,}", f"{word['uses']['now']:,}"]
        cells += [f"{one['excess']:+.3f}"] if by == "excess" else []
        rows.append([*cells, *([f"{word['gold']:g}"] if gold else [])])
        if one["prt_p" if by == "prt" else "apd_p"] <= SURE:
            bold += [(r, 0), (r, {"prt": 1, "apd": 4, "excess": 9}[by])]
    sampled = max(max(word["sampled"].values()) for word in found["words"])
    note = (
        f"Ranked by {MEASURES[by]}; cosine distances in {_layer(layer)}, of at most {sampled} uses "
        "a text. Chance: the uses dealt out at random. Within: two uses of the same text. Bold: "
        f"chance gives as much in at most {SURE:.0%} of the deals. Then, now: all uses."
    )
    if found["skipped"]:
        few = [f"{name} ({a} and {b})" for name, (a, b) in found["skipped"].items()]
        rest = f", and {len(few) - 12} more" if len(few) > 12 else ""
        note += f" Left out, with too few uses then and now: {', '.join(few[:12])}{rest}."
    return Table("How the uses of words have changed", [*columns, *more], rows, note, bold=bold)


def _by_layer(found: Json) -> Table:
    layers = list(found["words"][0]["layers"])
    by, chosen = found["by"], found["layer"]
    rows = [
        [
            word["word"],
            *(f"{word['layers'][layer][by]:.3f}" for layer in layers),
            f"{word['untrained'][chosen][by]:.3f}",
        ]
        for word in found["words"]
    ]
    return Table(
        f"{MEASURES[by]} by layer",
        ["word", *map(_layer, layers), "untrained"],
        rows,
        "Characters know no context: they differ only where forms or capitals do. "
        f"Untrained: {_layer(chosen)} of the same network before it learned anything.",
        bold=[(r, 1 + layers.index(chosen)) for r in range(len(rows))],
    )


def _correlation(found: Json) -> Table:
    layers = list(found["words"][0]["layers"])
    rows, bold = [], []
    for r, (measure, name) in enumerate(MEASURES.items()):
        values = [found["spearman"]["layers"][measure][layer] for layer in layers]
        control = found["spearman"]["untrained"][measure][found["layer"]]
        rows.append([name, *map(_signed, [*values, control])])
        known = [-2.0 if value is None else value for value in values]
        bold.append((r, 1 + best(known)))
    return Table(
        "Spearman's ρ with the gold scores",
        ["measure", *map(_layer, layers), "untrained"],
        rows,
        f"Over {len(found['words'])} words.",
        bold=bold,
    )


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _examples(word: Json) -> list[Table]:
    rows: list[list[str]] = []
    bold = []
    for when in ("then", "now"):
        for k, use in enumerate(word["examples"][when]):
            bold.append((len(rows), 2))
            parts = excerpt(use["words"], use["place"], 26)
            rows.append([when if k == 0 else "", *parts])
    return [
        Table(
            f"Uses of “{word['word']}” that differ most",
            ["", "", "word", ""],
            rows,
            left=(0, 2, 3),
            bold=bold,
        )
    ]


def _named(word: Json) -> str:
    more = len(word["forms"]) - 1
    return f"{word['word']} +{more}" if more else str(word["word"])


def _layer(name: str) -> str:
    return "mix" if name == "mix" else layer_name(name)


def pictures(found: Json) -> list[Picture]:
    """The distances of the words, and the uses of the first of them on a plane."""
    layer = found["layer"]
    top = found["words"][:BARS]
    whole = (
        f"the {BARS} first of {len(found['words'])} words, " if len(found["words"]) > BARS else ""
    )
    apart = [Group(_named(word), _apart(word["layers"][layer])) for word in top]
    means = [Group(_named(word), _prototypes(word, layer)) for word in top]
    made = [
        Picture(
            "prt",
            bars(
                f"How far the mean use has moved ({_layer(layer)})",
                means,
                across=f"{whole}cosine distance of the mean vectors (PRT)",
                digits=3,
            ),
        ),
        Picture(
            "apd",
            bars(
                f"How far apart two uses are, then and now ({_layer(layer)})",
                apart,
                across=f"{whole}mean cosine distance of two uses",
                digits=2,
            ),
        ),
    ]
    for number, word in enumerate(found["words"]):
        if word["picture"]:
            made.append(Picture(f"uses-{number + 1}", _cloud(word)))
    return made


def _apart(one: Mapping[str, float]) -> list[Bar]:
    return [
        Bar("between then and now (APD)", one["apd"]),
        Bar("within then", one["within_then"]),
        Bar("within now", one["within_now"]),
    ]


def _prototypes(word: Json, layer: str) -> list[Bar]:
    one = word["layers"][layer]
    return [
        Bar("between then and now (PRT)", one["prt"]),
        Bar("dealt out at random", one["prt_by_chance"]),
        Bar("untrained network", word["untrained"][layer]["prt"]),
    ]


def _cloud(word: Json) -> str:
    clouds = []
    for number, when in enumerate(("then", "now")):
        drawn = word["picture"][when]
        clouds.append(
            Cloud(
                when,
                [Point(each["at"][0], each["at"][1], each["text"]) for each in drawn],
                color=number,
            )
        )
    note = (
        "Each point is a use; a mouse over it shows its sentence. Vectors on the plane in which "
        "they differ most (PCA)."
    )
    return points(f"Uses of “{word['word']}”, then and now", clouds, note=note)
