"""Analyses of a biLM: what its layers know, and what tasks use of them.

    from elmokit.probe import probe_geometry, render_tables, report

    measurement = probe_geometry("news.txt", model="builtin")
    print(render_tables(measurement)[0].rows)
    report("builtin").save("builtin.html")

Each analysis returns a measurement: a JSON object with its numbers and a signature of what
determined them. There is a package for each question, with the same file names in each: readers of
data, `measure.py`, which computes, and `render.py`, which makes tables and figures from the
measurement alone. `tags`, `senses`, `similarity` and `geometry` measure every layer of a frozen
model, and the same network before training (`untrained.py`). `neighbors` and `change` examine the
uses of words in texts, `uses` draws those of one word. `tasks` trains task models in several ways
and compares them.

`results.py` stores measurements; `report_page.py` makes one page of all of them. Names are imported
at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.probe.change.measure import semantic_change
    from elmokit.probe.geometry.measure import probe_geometry
    from elmokit.probe.neighbors.index import Index
    from elmokit.probe.neighbors.measure import find_neighbors
    from elmokit.probe.neighbors.word_use import embed_word
    from elmokit.probe.report_page import Report, report
    from elmokit.probe.results import (
        Figure,
        Measurement,
        load_measurement,
        measurement_to_latex,
        render_figures,
        render_tables,
        save_measurement,
    )
    from elmokit.probe.senses.measure import probe_senses
    from elmokit.probe.similarity.measure import probe_similarity
    from elmokit.probe.tables import (
        Table,
        table_to_csv,
        table_to_html,
        table_to_latex,
        table_to_markdown,
    )
    from elmokit.probe.tags.measure import probe_tags
    from elmokit.probe.tasks.efficiency import sample_efficiency
    from elmokit.probe.tasks.variants import compare_layers, compare_placements
    from elmokit.probe.tasks.weights import learned_weights
    from elmokit.probe.uses.picture import draw_uses

__all__ = [
    "Figure",
    "Index",
    "Measurement",
    "Report",
    "Table",
    "compare_layers",
    "compare_placements",
    "draw_uses",
    "embed_word",
    "find_neighbors",
    "learned_weights",
    "load_measurement",
    "measurement_to_latex",
    "probe_geometry",
    "probe_senses",
    "probe_similarity",
    "probe_tags",
    "render_figures",
    "render_tables",
    "report",
    "sample_efficiency",
    "save_measurement",
    "semantic_change",
    "table_to_csv",
    "table_to_html",
    "table_to_latex",
    "table_to_markdown",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Figure": "elmokit.probe.results",
        "Index": "elmokit.probe.neighbors.index",
        "Measurement": "elmokit.probe.results",
        "Report": "elmokit.probe.report_page",
        "Table": "elmokit.probe.tables",
        "compare_layers": "elmokit.probe.tasks.variants",
        "compare_placements": "elmokit.probe.tasks.variants",
        "draw_uses": "elmokit.probe.uses.picture",
        "embed_word": "elmokit.probe.neighbors.word_use",
        "find_neighbors": "elmokit.probe.neighbors.measure",
        "learned_weights": "elmokit.probe.tasks.weights",
        "load_measurement": "elmokit.probe.results",
        "measurement_to_latex": "elmokit.probe.results",
        "probe_geometry": "elmokit.probe.geometry.measure",
        "probe_senses": "elmokit.probe.senses.measure",
        "probe_similarity": "elmokit.probe.similarity.measure",
        "probe_tags": "elmokit.probe.tags.measure",
        "render_figures": "elmokit.probe.results",
        "render_tables": "elmokit.probe.results",
        "report": "elmokit.probe.report_page",
        "sample_efficiency": "elmokit.probe.tasks.efficiency",
        "save_measurement": "elmokit.probe.results",
        "semantic_change": "elmokit.probe.change.measure",
        "table_to_csv": "elmokit.probe.tables",
        "table_to_html": "elmokit.probe.tables",
        "table_to_latex": "elmokit.probe.tables",
        "table_to_markdown": "elmokit.probe.tables",
    },
)
