"""Tables of text cells, independent of where they are shown: a terminal, a page, a document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """A table whose cells are formatted text."""

    title: str
    """Heading above the table."""
    columns: Sequence[str]
    """Column headers."""
    rows: Sequence[Sequence[str]]
    """Cells, row by row."""
    note: str = ""
    """Explanation below the table: how to read it."""
    left: Collection[int] = (0,)
    """Indices of the columns of text, which are aligned left; numbers are aligned right."""
    bold: Collection[tuple[int, int]] = ()
    """Highlighted cells as (row, column)."""


def table_to_markdown(table: Table) -> str:
    """Return the table as Markdown, with its title and its note."""
    lines = [
        _markdown_row(table.columns),
        _markdown_row("---" if i in table.left else "--:" for i in range(len(table.columns))),
    ]
    for r, row in enumerate(table.rows):
        cells = (f"**{cell}**" if (r, i) in table.bold else cell for i, cell in enumerate(row))
        lines.append(_markdown_row(cells))
    return "\n".join([f"**{table.title}**", "", *lines, *(["", table.note] if table.note else [])])


def table_to_html(table: Table) -> str:
    """Return the table as HTML, with its title as the caption and its note below."""

    def render_cell(tag: str, text: str, row: int, column: int) -> str:
        classes = [] if column in table.left else ["number"]
        if (row, column) in table.bold:
            classes.append("best")
        attribute = f' class="{" ".join(classes)}"' if classes else ""
        return f"<{tag}{attribute}>{escape(text)}</{tag}>"

    head = "".join(render_cell("th", text, -1, i) for i, text in enumerate(table.columns))
    body = "\n".join(
        f"<tr>{''.join(render_cell('td', text, r, i) for i, text in enumerate(row))}</tr>"
        for r, row in enumerate(table.rows)
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table"><table><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{note}\n"
    )


def _markdown_row(cells: Iterable[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
