"""Tables as documents and pages."""

from __future__ import annotations

from elmokit.probe.tables import Table, table_to_html, table_to_markdown

TABLE = Table(
    "Tags <1>", ["layer", "F1"], [["a | b", "1.0"], ["c", "2.0"]], "A note.", bold=[(1, 1)]
)


def test_markdown() -> None:
    assert table_to_markdown(TABLE).splitlines() == [
        "**Tags <1>**",
        "",
        "| layer | F1 |",
        "| --- | --: |",
        "| a \\| b | 1.0 |",
        "| c | **2.0** |",
        "",
        "A note.",
    ]


def test_html() -> None:
    page = table_to_html(TABLE)
    assert "<caption>Tags &lt;1&gt;</caption>" in page and "A note." in page
    assert '<td class="number best">2.0</td>' in page and "<td>a | b</td>" in page
