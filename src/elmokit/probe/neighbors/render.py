"""Tables and a figure of a `neighbors` measurement, made from the measurement alone."""

from __future__ import annotations

from dataclasses import replace

from elmokit.figures import Point, PointGroup, draw_scatter_plot
from elmokit.probe.excerpt import excerpt, excerpt_line
from elmokit.probe.results import (
    Figure,
    Measurement,
    layer_name,
    pools_sentence,
    with_context,
)
from elmokit.probe.tables import Table

QUERY_COLORS = (0, 1, 3, 4, 5)
"""Color numbers of the query sentences; color 2 is for other uses of the word."""


def render_tables(measured: Measurement) -> list[Table]:
    """Return tables of the nearest context-free words, and of the nearest uses per sentence."""
    word = measured["word"]
    rows = []
    if measured["static"] is not None:
        listed = ", ".join(each for each, _ in measured["static"]["words"])
        rows.append((measured["static"]["name"], listed or f"has no vector for “{word}”"))
    rows.append(("characters", ", ".join(each for each, _ in measured["characters"])))
    title = f"Nearest words to “{word}” without context"
    coverage = measured.get("glove_coverage")  # not in measurements of 0.1.0
    left_out = (
        f"GloVe is left out: it is English and has only {coverage:.0%} of the corpus' words."
        if measured["static"] is None and coverage is not None
        else ""
    )
    made = [Table(title, ("vectors", "words"), rows, left_out, left=(0, 1))]
    for question in measured["questions"]:
        cells = [
            (f"{each['similarity']:.3f}", *excerpt(each["words"], each["place"]))
            for each in question["neighbors"]
        ]
        query = excerpt_line(question["words"], question["place"], side=60)
        made.append(
            Table(
                f"Nearest uses to: {query}",
                ("cosine", "before", "word", "after"),
                cells,
                left=(2, 3),
                bold=[(r, 2) for r in range(len(cells))],
                note="" if cells else f"The corpus has no other use of “{word}”.",
            )
        )
    note = " ".join(filter(None, (made[-1].note, _search_note(measured))))
    return [*made[:-1], replace(made[-1], note=note)]


def _search_note(measured: Measurement) -> str:
    """Say what was searched, and how."""
    corpus, recall = measured["corpus"], measured["recall_at_10"]
    layer = "the mix of all layers" if measured["layer"] == "mix" else layer_name(measured["layer"])
    if pools_sentence(measured):
        layer += ", of the word and the mean of its sentence"
    method = (
        "every use was compared"
        if recall is None
        else f"the search graph finds {recall:.1%} of the ten nearest"
    )
    return (
        f"Vectors: {layer}. The corpus has {corpus['words']:,} uses of {corpus['forms']:,} words "
        f"in {corpus['sentences']:,} sentences, among them {measured['uses_of_the_word']:,} uses "
        f"of “{measured['word']}”. At most one neighbor per sentence; {method}."
    )


def render_figures(measured: Measurement) -> list[Figure]:
    """Return a scatter plot of the query uses, their neighbors, and other uses of the word."""
    word = measured["word"]
    several = len(measured["questions"]) > 1
    groups = []
    labeled = {word.casefold()}
    for number, question in enumerate(measured["questions"]):
        tooltip = excerpt_line(question["words"], question["place"], side=60)
        label = f"{number + 1}: {word}" if several else word
        query = _point(question, tooltip, label, large=True)
        points = []
        for each in question["neighbors"]:
            neighbor: str = each["words"][each["place"]]
            # Each word other than the query is labeled once.
            is_new = neighbor.casefold() not in labeled
            labeled.add(neighbor.casefold())
            text = excerpt_line(each["words"], each["place"], side=60)
            tooltip = f"{each['similarity']:.3f}: {text}"
            points.append(_point(each, tooltip, neighbor if is_new else ""))
        color = QUERY_COLORS[number % len(QUERY_COLORS)]
        groups.append(PointGroup(_group_name(measured, number), [*points, query], color=color))
    if measured["other_uses"]:
        others = [_point(each, each["text"]) for each in measured["other_uses"]]
        groups.insert(0, PointGroup(f"other uses of “{word}”", others, color=2))
    note = "Vectors on the plane in which they differ most (PCA). Large: the uses asked for."
    title = with_context(f"“{word}” in context", measured)
    return [Figure("", draw_scatter_plot(title, groups, note=note))]


def _group_name(measured: Measurement, number: int) -> str:
    """Return the legend of a query's neighbors: as much of the sentence as there is room for."""
    questions = measured["questions"]
    use = questions[number]
    if len(questions) > 3:
        return f"near {number + 1}"
    text = excerpt_line(use["words"], use["place"], side=14 if len(questions) < 3 else 5)
    return f"near {number + 1}: {text}" if len(questions) > 1 else f"near {text}"


def _point(use: Measurement, name: str, label: str = "", large: bool = False) -> Point:
    x, y = use["at"]
    return Point(x, y, name, label, large)
