"""Tables and figures of a `change` measurement, made from the measurement alone."""

from __future__ import annotations

from collections.abc import Mapping

from elmokit.figures import Bar, BarGroup, Point, PointGroup, draw_bar_chart, draw_scatter_plot
from elmokit.probe.excerpt import excerpt
from elmokit.probe.results import Figure, Measurement, argmax, layer_name
from elmokit.probe.tables import Table

MEASURES = {"prt": "PRT", "apd": "APD", "excess": "APD − within"}
"""Names of the measures. PRT is the default: APD is also large for words with many uses."""
CHARTED_WORDS = 20
"""Words in a bar chart, at most."""
SKIPPED_SHOWN = 12
"""Words with too few uses that are listed, at most."""
SIGNIFICANCE = 0.05
"""p-value up to which a change is printed in bold."""


def render_tables(measured: Measurement) -> list[Table]:
    """Return tables of the ranking, of all layers, of correlations with gold, and of examples."""
    made = [_ranking(measured), _by_layer(measured)]
    if measured["spearman"] is not None:
        made.append(_correlation(measured))
    return [*made, *(_examples(word) for word in measured["words"] if word["picture"])]


def _ranking(measured: Measurement) -> Table:
    layer, by = measured["layer"], measured["by"]
    gold = measured["spearman"] is not None
    columns = ["word", "PRT", "chance", "p", "APD", "within", "p", "then", "now"]
    more = (["excess"] if by == "excess" else []) + (["gold"] if gold else [])
    rows, bold = [], []
    for r, word in enumerate(measured["words"]):
        distances = word["layers"][layer]
        cells = [_label(word)]
        cells += [
            f"{distances['prt']:.3f}",
            f"{distances['prt_by_chance']:.3f}",
            f"{distances['prt_p']:.3f}",
        ]
        within = (distances["within_then"] + distances["within_now"]) / 2
        cells += [f"{distances['apd']:.3f}", f"{within:.3f}", f"{distances['apd_p']:.3f}"]
        cells += [f"{word['uses']['then']:,}", f"{word['uses']['now']:,}"]
        cells += [f"{distances['excess']:+.3f}"] if by == "excess" else []
        rows.append([*cells, *([f"{word['gold']:g}"] if gold else [])])
        if distances["prt_p" if by == "prt" else "apd_p"] <= SIGNIFICANCE:
            bold += [(r, 0), (r, {"prt": 1, "apd": 4, "excess": 9}[by])]
    sampled = max(max(word["sampled"].values()) for word in measured["words"])
    note = (
        f"Ranked by {MEASURES[by]}. Cosine distances in {_layer(layer)}, from at most {sampled} "
        "uses per text. chance: mean PRT if the uses are assigned to the texts at random; p: how "
        "often such random groups are as far apart; within: distance between two uses of the same "
        f"text; then, now: all uses in each text. Bold: p is at most {SIGNIFICANCE:g}."
    )
    if measured["skipped"]:
        few = [f"{name} ({a} and {b})" for name, (a, b) in measured["skipped"].items()]
        more_words = len(few) - SKIPPED_SHOWN
        rest = f", and {more_words} more" if more_words > 0 else ""
        note += (
            " Left out because they have too few uses (then and now): "
            f"{', '.join(few[:SKIPPED_SHOWN])}{rest}."
        )
    title = "How the uses of words have changed"
    return Table(title, [*columns, *more], rows, note, bold=bold)


def _by_layer(measured: Measurement) -> Table:
    layers = list(measured["words"][0]["layers"])
    by, chosen = measured["by"], measured["layer"]
    rows = [
        [
            word["word"],
            *(f"{word['layers'][layer][by]:.3f}" for layer in layers),
            f"{word['untrained'][chosen][by]:.3f}",
        ]
        for word in measured["words"]
    ]
    return Table(
        f"{MEASURES[by]} by layer",
        ["word", *map(_layer, layers), "untrained"],
        rows,
        "The character layer knows no context: it differs only where word forms or capitals do. "
        f"untrained: {_layer(chosen)} of the same network before training.",
        bold=[(r, 1 + layers.index(chosen)) for r in range(len(rows))],
    )


def _correlation(measured: Measurement) -> Table:
    layers = list(measured["words"][0]["layers"])
    rows, bold = [], []
    for r, (measure, name) in enumerate(MEASURES.items()):
        values = [measured["spearman"]["layers"][measure][layer] for layer in layers]
        control = measured["spearman"]["untrained"][measure][measured["layer"]]
        rows.append([name, *map(_signed, [*values, control])])
        known = [-2.0 if value is None else value for value in values]
        bold.append((r, 1 + argmax(known)))
    return Table(
        "Spearman's ρ with the gold scores",
        ["measure", *map(_layer, layers), "untrained"],
        rows,
        f"Over {len(measured['words'])} words.",
        bold=bold,
    )


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _examples(word: Measurement) -> Table:
    rows: list[list[str]] = []
    bold = []
    for when in ("then", "now"):
        for k, use in enumerate(word["examples"][when]):
            bold.append((len(rows), 2))
            parts = excerpt(use["words"], use["place"], 26)
            rows.append([when if k == 0 else "", *parts])
    return Table(
        f"Uses of “{word['word']}” that differ most from the other text",
        ["", "", "word", ""],
        rows,
        left=(0, 2, 3),
        bold=bold,
    )


def _label(word: Measurement) -> str:
    """Return the name of a word, with the number of its other forms."""
    more = len(word["forms"]) - 1
    return f"{word['word']} +{more}" if more else str(word["word"])


def _layer(name: str) -> str:
    return "mix" if name == "mix" else layer_name(name)


def render_figures(measured: Measurement) -> list[Figure]:
    """Return bar charts of the distances, and scatter plots of the uses of the first words."""
    layer, words = measured["layer"], measured["words"]
    charted = words[:CHARTED_WORDS]
    scope = (
        f"the {CHARTED_WORDS} first of {len(words)} words, " if len(words) > CHARTED_WORDS else ""
    )
    made = [
        Figure(
            "prt",
            draw_bar_chart(
                f"How far the mean use has moved ({_layer(layer)})",
                [BarGroup(_label(word), _prt_bars(word, layer)) for word in charted],
                x_label=f"{scope}cosine distance of the mean vectors (PRT)",
                digits=3,
            ),
        ),
        Figure(
            "apd",
            draw_bar_chart(
                f"How far apart two uses are, then and now ({_layer(layer)})",
                [BarGroup(_label(word), _apd_bars(word["layers"][layer])) for word in charted],
                x_label=f"{scope}mean cosine distance of two uses",
                digits=2,
            ),
        ),
    ]
    for number, word in enumerate(words):
        if word["picture"]:
            made.append(Figure(f"uses-{number + 1}", _scatter_plot(word)))
    return made


def _apd_bars(distances: Mapping[str, float]) -> list[Bar]:
    return [
        Bar("between then and now (APD)", distances["apd"]),
        Bar("within then", distances["within_then"]),
        Bar("within now", distances["within_now"]),
    ]


def _prt_bars(word: Measurement, layer: str) -> list[Bar]:
    distances = word["layers"][layer]
    return [
        Bar("between then and now (PRT)", distances["prt"]),
        Bar("dealt out at random", distances["prt_by_chance"]),
        Bar("untrained network", word["untrained"][layer]["prt"]),
    ]


def _scatter_plot(word: Measurement) -> str:
    groups = [
        PointGroup(
            text,
            [Point(use["at"][0], use["at"][1], use["text"]) for use in word["picture"][text]],
            color=number,
        )
        for number, text in enumerate(("then", "now"))
    ]
    note = (
        "Each point is a use; a mouse over it shows its sentence. Vectors on the plane in which "
        "they differ most (PCA)."
    )
    return draw_scatter_plot(f"Uses of “{word['word']}”, then and now", groups, note=note)
