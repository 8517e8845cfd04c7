"""Tables, before it is decided where they will be read: a terminal, a page, a document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Cells that are text already."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """Below it: what a reader must know to read it rightly."""
    left: Collection[int] = (0,)
    """Columns of words; the others are numbers, which are aligned at their ends."""
    bold: Collection[tuple[int, int]] = ()
    """Cells to be seen first: (row, column)."""


def markdown(table: Table) -> str:
    """For a document."""
    lines = [
        _line(table.columns),
        _line("---" if i in table.left else "--:" for i in range(len(table.columns))),
    ]
    for r, row in enumerate(table.rows):
        lines.append(_line(f"**{c}**" if (r, i) in table.bold else c for i, c in enumerate(row)))
    return "\n".join([f"**{table.title}**", "", *lines, *(["", table.note] if table.note else [])])


def html(table: Table) -> str:
    """For a page."""

    def cell(name: str, text: str, row: int, column: int) -> str:
        kinds = [] if column in table.left else ["number"]
        if (row, column) in table.bold:
            kinds.append("best")
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        return f"<{name}{kind}>{escape(text)}</{name}>"

    head = "".join(cell("th", text, -1, i) for i, text in enumerate(table.columns))
    body = "\n".join(
        f"<tr>{''.join(cell('td', text, r, i) for i, text in enumerate(row))}</tr>"
        for r, row in enumerate(table.rows)
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table"><table><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{note}\n"
    )


def _line(cells: Iterable[str]) -> str:
    found = [each.replace("|", "\\|") for each in cells]
    return f"| {' | '.join(found)} |"
