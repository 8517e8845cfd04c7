"""Tables and figures of a `change` measurement, made from the measurement alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

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
"""q-value up to which a change is printed in bold."""


def render_tables(measured: Measurement) -> list[Table]:
    """Return tables of the ranking, its control, all layers, correlations with gold, and examples.

    A measurement that was made before documents were permuted has no control.
    """
    made = [_ranking(measured)]
    if "texts" in measured:
        made.append(_control(measured))
    made.append(_by_layer(measured))
    if measured["spearman"] is not None:
        made.append(_correlation(measured))
    return [*made, *(_examples(word) for word in measured["words"] if word["picture"])]


def _ranking(measured: Measurement) -> Table:
    words, by, has_control = measured["words"], measured["by"], "texts" in measured
    found = [word["layers"][measured["layer"]] for word in words]
    columns = {
        "word": [_label(word) for word in words],
        MEASURES[by]: [_number(each[by]) for each in found],
        "chance": [_number(_by_chance(each, by)) for each in found],
    }
    if has_control:
        columns["halves"] = [_number(_between_halves(measured, word)) for word in words]
    columns["p"] = [_number(each[f"{_tested(by)}_p"], 4) for each in found]
    if has_control:
        columns["q"] = [_number(each[f"{_tested(by)}_q"], 4) for each in found]
    columns |= {
        MEASURES[other]: [_number(each[other]) for each in found]
        for other in ("prt", "apd")
        if other != by
    }
    columns["within"] = [_number((each["within_then"] + each["within_now"]) / 2) for each in found]
    for text in ("then", "now"):
        columns[text] = [f"{word['uses'][text]:,}" for word in words]
    if measured["spearman"] is not None:
        columns["gold"] = [f"{word['gold']:g}" for word in words]
    changed = [r for r, word in enumerate(words) if _is_changed(measured, word)]
    return Table(
        "How the uses of words have changed",
        list(columns),
        [list(row) for row in zip(*columns.values(), strict=True)],
        _ranking_note(measured),
        bold=[(r, column) for r in changed for column in (0, 1)],
    )


def _tested(by: str) -> str:
    """Return which of the two tests belongs to a measure."""
    return "prt" if by == "prt" else "apd"


def _by_chance(distances: Measurement, by: str) -> float | None:
    """Return the distance to expect by chance; None if there was no test."""
    chance: float | None = distances[f"{_tested(by)}_by_chance"]
    # By chance, the APD is as large as the distances within.
    return 0.0 if by == "excess" and chance is not None else chance


def _between_halves(measured: Measurement, word: Measurement) -> float | None:
    """Return the distance between halves of one text, the mean of both texts; None if unknown.

    A half has fewer uses than a text, and a PRT of fewer uses is larger by chance alone. So it is
    divided by how much larger: the result can be compared with that between the texts.
    """
    by = measured["by"]
    found = [each for each in word["halves"].values() if each is not None]
    if by != "prt":
        return _mean([each[by] for each in found])
    chance = word["layers"][measured["layer"]]["prt_by_chance"]
    if chance is None:
        return None
    return _mean(
        [each["prt"] * chance / each["prt_by_chance"] for each in found if each["prt_by_chance"]]
    )


def _ranking_note(measured: Measurement) -> str:
    layer, by = measured["layer"], measured["by"]
    sampled = max(max(word["sampled"].values()) for word in measured["words"])
    note = (
        f"Ranked by {MEASURES[by]}. PRT, prototype distance: cosine distance between the mean "
        "vectors of the uses then and now. APD, average pairwise distance: mean cosine distance "
        "between a use then and a use now. within: the same between two uses of one text. "
        f"Vectors: {_layer(layer)}, of at most {sampled} uses per text. "
    )
    if "texts" in measured:
        note += (
            f"chance: {MEASURES[by]} to expect if {_unit_phrase(measured)} were assigned to the "
            "texts at random; p: how often they would then be as far apart. q: p corrected for "
            f"the {len(measured['words'])} words (Benjamini–Hochberg). halves: {MEASURES[by]} "
            "between the first and the second half of the same text"
            f"{', reduced to as many uses' if by == 'prt' else ''}. then, now: all uses in each "
            f"text. Bold: q is at most {SIGNIFICANCE:g}, and the texts are farther apart than "
            f"halves{_reference_phrase(measured)}."
        )
    else:
        note += (
            f"chance: {MEASURES[by]} if the uses are assigned to the texts at random; p: how often "
            "such random groups are as far apart. This measurement is from a version that "
            "permuted single uses, not documents, so p is too small: measure again. then, now: "
            f"all uses in each text. Bold: p is at most {SIGNIFICANCE:g}."
        )
    if measured["skipped"]:
        few = [f"{name} ({a} and {b})" for name, (a, b) in measured["skipped"].items()]
        more_words = len(few) - SKIPPED_SHOWN
        rest = f", and {more_words} more" if more_words > 0 else ""
        note += (
            " Left out because they have too few uses (then and now): "
            f"{', '.join(few[:SKIPPED_SHOWN])}{rest}."
        )
    return note


def _unit_phrase(measured: Measurement) -> str:
    """Return what was permuted, in words."""
    one, two = (
        {
            "documents": "the {documents:,} documents of {name}",
            "blocks of documents": "blocks of the {documents:,} documents of {name}",
            "blocks": "blocks of sentences of {name}",
        }[text["unit"]].format(name=name, **text)
        for name, text in measured["texts"].items()
    )
    return f"{one} and {two}"


def _reference_phrase(measured: Measurement) -> str:
    farthest = _farthest_reference(measured)
    if farthest is None:
        return ""
    return f", and than the texts' most frequent words ({farthest:.3f} at most, see below)"


def _is_changed(measured: Measurement, word: Measurement) -> bool:
    """Return whether a word is printed in bold."""
    by = measured["by"]
    distances = word["layers"][measured["layer"]]
    if "texts" not in measured:
        return bool(distances[f"{_tested(by)}_p"] <= SIGNIFICANCE)
    controls = [_between_halves(measured, word), _farthest_reference(measured)]
    return _is_at_most(distances[f"{_tested(by)}_q"]) and all(
        each is None or distances[by] > each for each in controls
    )


def _farthest_reference(measured: Measurement) -> float | None:
    """Return the largest distance of the texts' most frequent words, None if there are none."""
    return max((each[measured["by"]] for each in measured["reference"].values()), default=None)


def _is_at_most(p: float | None) -> bool:
    return p is not None and p <= SIGNIFICANCE


def _control(measured: Measurement) -> Table:
    by, words = measured["by"], measured["words"]
    p, q = f"{_tested(by)}_p", f"{_tested(by)}_q"
    comparisons = {"then and now": [word["layers"][measured["layer"]] for word in words]}
    for text in ("then", "now"):
        comparisons[f"halves of {text}"] = [word["halves"][text] for word in words]
    if reference := measured["reference"]:
        comparisons["most frequent words"] = list(reference.values())
    rows = []
    for name, found in comparisons.items():
        tests = [each for each in found if each is not None and each[p] is not None]
        rows.append(
            [
                name,
                f"{len(tests):,}",
                _number(_mean([each[by] for each in tests])),
                _number(_mean([_by_chance(each, by) or 0.0 for each in tests])),
                f"{sum(_is_at_most(each[p]) for each in tests):,}",
                f"{sum(_is_at_most(each[q]) for each in tests):,}",
            ]
        )
    note = (
        "The same test between the first and the second half of one text, where nothing has "
        f"changed: there, p should be at most {SIGNIFICANCE:g} for one word in "
        f"{round(1 / SIGNIFICANCE)}, and q for hardly any. Where it is for more, the text itself "
        "changes from beginning to end, and a difference between the texts says less."
    )
    if reference:
        farthest = max(reference, key=lambda name: (reference[name][by], name))
        note += (
            f" most frequent words: {', '.join(reference)}, between then and now. Their meaning "
            "does not change, so their distance is how much the texts differ as wholes, for "
            f"example in domain or style; it is largest for “{farthest}” "
            f"({reference[farthest][by]:.3f})."
        )
        differing = sum(_is_at_most(each[q]) for each in reference.values())
        if differing > len(reference) / 2:
            note += (
                f" q is at most {SIGNIFICANCE:g} for {differing} of these {len(reference)} words, "
                "so nearly every word differs between these texts, and a small p or q alone is no "
                "sign of a change of meaning."
            )
    return Table(
        "Control: halves of the same text, and words that do not change",
        [
            "texts",
            "words",
            f"mean {MEASURES[by]}",
            "chance",
            f"p ≤ {SIGNIFICANCE:g}",
            f"q ≤ {SIGNIFICANCE:g}",
        ],
        rows,
        note,
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


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
        ["text", "before", "word", "after"],
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
                [BarGroup(_label(word), _prt_bars(measured, word)) for word in charted],
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
    names: set[str] = set()
    for number, word in enumerate(words):
        if word["picture"]:
            name = f"uses-{_file_name(word['word']) or number + 1}"
            if name.casefold() in names:  # some file systems ignore case
                name = f"{name}-{number + 1}"
            names.add(name.casefold())
            made.append(Figure(name, _scatter_plot(word)))
    return made


def _file_name(word: str) -> str:
    """Return a word as a part of a file name: letters and digits, with hyphens between them."""
    return "-".join(re.findall(r"\w+", word))


def _apd_bars(distances: Mapping[str, float]) -> list[Bar]:
    return [
        Bar("between then and now (APD)", distances["apd"]),
        Bar("within then", distances["within_then"]),
        Bar("within now", distances["within_now"]),
    ]


def _prt_bars(measured: Measurement, word: Measurement) -> list[Bar]:
    layer = measured["layer"]
    bars = {
        "between then and now (PRT)": word["layers"][layer]["prt"],
        "by chance": word["layers"][layer]["prt_by_chance"],
        "halves of one text": _between_halves({**measured, "by": "prt"}, word)
        if "halves" in word
        else None,
        "untrained network": word["untrained"][layer]["prt"],
    }
    return [Bar(name, value) for name, value in bars.items() if value is not None]


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
