"""Tables and figures of the geometry probe, rendered from its measurement alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elmokit.figures import Line, Panel, draw_line_chart
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.results import (
    Figure,
    Measurement,
    ResultRow,
    argmax,
    layer_name,
    network_layer_name,
)
from elmokit.probe.tables import Table

PANELS = {
    "anisotropy": "anisotropy: cosine between uses of different words",
    "self adjusted": "self-similarity: cosine between uses of the same word, minus anisotropy",
    "sentence adjusted": "intra-sentence similarity: cosine with the sentence, minus anisotropy",
    "variance adjusted": "maximum explainable variance: by one direction, minus the baseline",
}
"""Titles of the figure's panels, by the key of the measure."""
ADJUSTED = {
    "self adjusted": "self-similarity",
    "sentence adjusted": "intra-sentence",
    "variance adjusted": "variance",
    "anisotropy": "anisotropy",
}
"""Columns of the table of adjusted measures."""
UNADJUSTED = {
    "self": "self-similarity",
    "sentence": "intra-sentence",
    "variance": "variance",
    "length": "vector length",
}
"""Columns of the table of unadjusted measures."""


def render_tables(measurement: Measurement) -> list[Table]:
    """Return the measures by layer, and the words that depend most and least on context."""
    unadjusted = "The same measures without adjustment, by layer"
    tables = [_adjusted_table(measurement), _layers_table(unadjusted, measurement, UNADJUSTED)]
    if measurement["moving"]:
        tables.append(_words_table(measurement))
    return tables


def _adjusted_table(measurement: Measurement) -> Table:
    note = (
        f"{measurement['words']:,} words in {measurement['sentences']:,} sentences"
        f"{_repeated(measurement['repeated'])}; {measurement['counted']:,} words with enough uses, "
        f"of which {measurement['sampled']:,} are sampled for the variance. Lower self-similarity "
        "and variance mean that vectors depend more on context (bold: the most contextual layer). "
        "Intra-sentence is the similarity of a word to the mean of its sentence. Where anisotropy "
        "is near 1, all vectors point the same way and little is left to compare."
    )
    title = "How much vectors depend on context by layer, adjusted for anisotropy"
    table = _layers_table(title, measurement, ADJUSTED)
    layers = _layers(measurement)
    trained = [i for i, each in enumerate(layers) if each["network"] == "trained"]
    bold = [
        (trained[argmax([-layers[i][key] for i in trained])], 1 + list(ADJUSTED).index(key))
        for key in ("self adjusted", "variance adjusted")
    ]
    return replace(table, note=note, bold=bold)


def _layers_table(title: str, measurement: Measurement, columns: Mapping[str, str]) -> Table:
    rows = []
    for each in _layers(measurement):
        rows.append(
            [
                network_layer_name(each["network"], each["layer"]),
                *(f"{each[key]:.{1 if key == 'length' else 3}f}" for key in columns),
            ]
        )
    return Table(title, ["", *columns.values()], rows)


def _layers(measurement: Measurement) -> list[ResultRow]:
    """Return the layers, those of the untrained network first."""
    layers = measurement["layers"]
    return sorted(layers, key=lambda each: NETWORKS.index(each["network"]), reverse=True)


def _repeated(count: int) -> str:
    return f" ({count:,} repeated sentences were left out)" if count else ""


def _words_table(measurement: Measurement) -> Table:
    rows = []
    for moving, constant in zip(measurement["moving"], measurement["constant"], strict=True):
        row = []
        for each in (moving, constant):
            row += [each["word"], f"{each['uses']:,}", f"{each['self'][-1]:.3f}"]
        rows.append(row)
    top = layer_name(len(measurement["moving"][0]["self"]) - 1)
    return Table(
        f"Words whose vectors depend most and least on context ({top})",
        ["most", "uses", "self-sim.", "least", "uses", "self-sim."],
        rows,
        note=f"Only words with a letter and at least {measurement['listed uses']} uses. self-sim.: "
        "self-similarity, not adjusted.",
        left=(0, 3),
    )


def render_figures(measurement: Measurement) -> list[Figure]:
    """Return one figure with a panel per measure, by layer."""
    layers = measurement["layers"]
    names = {float(each["layer"]): layer_name(each["layer"]) for each in layers}
    panels = []
    for key, title in PANELS.items():
        drawn = []
        for network in NETWORKS:
            values = [
                (float(each["layer"]), float(each[key]))
                for each in layers
                if each["network"] == network
            ]
            untrained = network == "untrained"
            drawn.append(Line(network, values, color=2 if untrained else 0, dashed=untrained))
        panels.append(Panel(title, drawn, height=130, digits=2))
    title = "Geometry of the vectors by layer"
    return [Figure("", draw_line_chart(title, panels, x_label="", ticks=names))]


def headline(measurement: Measurement) -> tuple[str, str] | None:
    """Return the adjusted self-similarity of words in the top layer."""
    top = [each for each in _layers(measurement) if each["network"] == "trained"][-1]
    text = f"self-similarity of words in {layer_name(top['layer'])}, minus anisotropy"
    return f"{top['self adjusted']:.2f}", text
