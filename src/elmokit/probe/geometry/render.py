"""What the geometry probe found, for readers: made of the measurement alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elmokit.figures import Line, Panel, lines
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.results import Json, Picture, best, layer_name, network_layer_name
from elmokit.probe.tables import Table

PANELS = {
    "anisotropy": "anisotropy: cosine between uses of different words",
    "self adjusted": "self-similarity: cosine between uses of the same word, less anisotropy",
    "sentence adjusted": "intra-sentence similarity: cosine with the sentence, less anisotropy",
    "variance adjusted": "maximum explainable variance: by one direction, less that of any words",
}
ADJUSTED = {
    "self adjusted": "self-similarity",
    "sentence adjusted": "in sentence",
    "variance adjusted": "variance",
    "anisotropy": "anisotropy",
}
AS_IT_IS = {
    "self": "self-similarity",
    "sentence": "in sentence",
    "variance": "variance",
    "length": "length",
}


def tables(found: Json) -> list[Table]:
    """The layers, and the words at both ends."""
    shown = [_adjusted_table(found), _layers_table("The same, as measured", found, AS_IT_IS)]
    if found["moving"]:
        shown.append(_words_table(found))
    return shown


def _adjusted_table(found: Json) -> Table:
    note = (
        f"{found['words']:,} words in {found['sentences']:,} sentences"
        f"{_repeated(found['repeated'])}; {found['counted']:,} words with enough uses, of them "
        f"{found['sampled']:,} for the variance. Self-similarity and variance are lower where "
        "vectors depend more on context (bold: the most contextual layer); in sentence is how "
        "near a word is to its sentence's mean. Where anisotropy is near 1, all vectors point "
        "one way and little is left to compare."
    )
    title = "How far context moves words, less what different words have in common"
    table = _layers_table(title, found, ADJUSTED)
    layers = _layers(found)
    trained = [i for i, each in enumerate(layers) if each["network"] == "trained"]
    bold = [
        (trained[best([-layers[i][key] for i in trained])], 1 + list(ADJUSTED).index(key))
        for key in ("self adjusted", "variance adjusted")
    ]
    return replace(table, note=note, bold=bold)


def _layers_table(title: str, found: Json, columns: Mapping[str, str]) -> Table:
    rows = []
    for each in _layers(found):
        rows.append(
            [
                network_layer_name(each["network"], each["layer"]),
                *(f"{each[key]:.{1 if key == 'length' else 3}f}" for key in columns),
            ]
        )
    return Table(title, ["", *columns.values()], rows)


def _layers(found: Json) -> list[Json]:
    """Untrained layers first, as what the trained ones are compared with."""
    return sorted(found["layers"], key=lambda e: NETWORKS.index(e["network"]), reverse=True)


def _repeated(count: int) -> str:
    return f" ({count:,} more were repetitions)" if count else ""


def _words_table(found: Json) -> Table:
    rows = []
    for moving, constant in zip(found["moving"], found["constant"], strict=True):
        row = []
        for each in (moving, constant):
            row += [each["word"], f"{each['uses']:,}", f"{each['self'][-1]:.3f}"]
        rows.append(row)
    top = layer_name(len(found["moving"][0]["self"]) - 1)
    return Table(
        f"Words that context moves most and least ({top})",
        ["most", "uses", "self-sim.", "least", "uses", "self-sim."],
        rows,
        note=f"Of the words with a letter and {found['listed uses']} uses or more.",
        left=(0, 3),
    )


def pictures(found: Json) -> list[Picture]:
    """The measures by layer."""
    names = {float(e["layer"]): layer_name(e["layer"]) for e in found["layers"]}
    panels = []
    for key, title in PANELS.items():
        drawn = []
        for network in NETWORKS:
            values = [
                (float(e["layer"]), float(e[key]))
                for e in found["layers"]
                if e["network"] == network
            ]
            untrained = network == "untrained"
            drawn.append(Line(network, values, color=2 if untrained else 0, dashed=untrained))
        panels.append(Panel(title, drawn, height=130, digits=2))
    return [Picture("", lines("How vectors lie, layer by layer", panels, across="", ticks=names))]


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember: how much context moves words in the top layer."""
    top = [each for each in _layers(found) if each["network"] == "trained"][-1]
    told = f"self-similarity of words in {layer_name(top['layer'])}, adjusted"
    return f"{top['self adjusted']:.2f}", told
