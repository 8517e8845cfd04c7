"""Tables of text cells, independent of where they are shown: a terminal, a page, a document."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

_NUMBER = re.compile(r"[+−-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")
"""A number as tables show it, with thousands separators and any sign."""
_PERCENT = re.compile(rf"{_NUMBER.pattern} ?%")
_SPREAD = re.compile(r"([+−-]?[\d.,]+) ± ([\d.]+)")
_NOT_MEASURED = ("", "–")

_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # \textquotedbl needs another font encoding than LaTeX's own
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "ρ": r"$\rho$",
    "λ": r"$\lambda$",
    "γ": r"$\gamma$",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\u00a0": "~",
    "\u202f": r"\,",
}
"""Characters with a meaning in LaTeX, and characters that its fonts may lack."""


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

    @cached_property
    def highlighted(self) -> frozenset[tuple[int, int]]:
        """The highlighted cells, to look them up."""
        return frozenset(self.bold)


def table_to_markdown(table: Table) -> str:
    """Return the table as Markdown, with its title and its note."""
    lines = [
        _markdown_row(table.columns),
        _markdown_row("---" if i in table.left else "--:" for i in range(len(table.columns))),
    ]
    for r, row in enumerate(table.rows):
        cells = (
            f"**{cell}**" if (r, i) in table.highlighted else cell for i, cell in enumerate(row)
        )
        lines.append(_markdown_row(cells))
    return "\n".join([f"**{table.title}**", "", *lines, *(["", table.note] if table.note else [])])


def table_to_html(table: Table) -> str:
    """Return the table as HTML, with its title as the caption and its note below."""

    def render_cell(tag: str, text: str, row: int, column: int) -> str:
        classes = [] if column in table.left else ["number"]
        if (row, column) in table.highlighted:
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


def table_to_csv(table: Table) -> str:
    """Return the table as CSV for other programs: a header and rows, without title and note.

    Numbers have no thousands separators and a hyphen as the minus sign; a dash, which stands for
    what was not measured, is an empty field. A column of numbers with their spread (`1.0 ± 0.1`)
    becomes two, and percent signs go to the column's name. Column names are unique.
    """
    columns: dict[str, list[str]] = {}
    for number, name in enumerate(table.columns):
        cells = [row[number] for row in table.rows]
        for unique, values in _csv_columns(name or ("name" if number == 0 else "text"), cells):
            columns[f"{unique} {number + 1}" if unique in columns else unique] = values
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()


def _csv_columns(name: str, cells: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the names and cells of the CSV columns that one column of a table becomes."""
    measured = [cell for cell in cells if cell not in _NOT_MEASURED]
    if measured and all(_PERCENT.fullmatch(cell) for cell in measured):
        return [(f"{name} (%)", [_plain_number(cell.removesuffix("%").strip()) for cell in cells])]
    spread = [_SPREAD.fullmatch(cell) for cell in cells]
    if not any(spread):
        return [(name, [_plain_number(cell) for cell in cells])]
    numbers = [
        cell if match is None else match[1] for cell, match in zip(cells, spread, strict=True)
    ]
    spreads = ["" if match is None else match[2] for match in spread]
    return [(name, list(map(_plain_number, numbers))), (f"{name} ±", spreads)]


def _plain_number(cell: str) -> str:
    """Return a cell as other programs read numbers; other text stays as it is."""
    if cell in _NOT_MEASURED:
        return ""
    if _NUMBER.fullmatch(cell) is None:
        return cell
    return cell.replace(",", "").replace("−", "-").removeprefix("+")


def table_to_latex(table: Table, label: str = "") -> str:
    """Return the table as LaTeX, with its title as the caption and its note below.

    It needs the package booktabs, and UTF-8, which LaTeX reads by default.

    Args:
        table: The table.
        label: Name for `\\ref`, such as `tab:change`; none if empty.
    """
    alignment = "".join("l" if i in table.left else "r" for i in range(len(table.columns)))
    body = [
        " & ".join(
            f"\\textbf{{{_latex(cell)}}}" if (r, i) in table.highlighted and cell else _latex(cell)
            for i, cell in enumerate(row)
        )
        for r, row in enumerate(table.rows)
    ]
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_latex(table.title)}}}",
        *([rf"  \label{{{label}}}"] if label else []),
        rf"  \begin{{tabular}}{{{alignment}}}",
        r"    \toprule",
        rf"    {' & '.join(map(_latex, table.columns))} \\",
        r"    \midrule",
        *(rf"    {row} \\" for row in body),
        r"    \bottomrule",
        r"  \end{tabular}",
        *([rf"  \par\smallskip\footnotesize {_latex(table.note)}"] if table.note else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex(text: str) -> str:
    """Return text with everything escaped that means something to LaTeX."""
    escaped = "".join(_LATEX.get(character, character) for character in text)
    escaped = re.sub(r"^-(?=\d)", "$-$", escaped)
    # Two hyphens would become a dash, and a bracket or an asterisk after a line an argument of it.
    return re.sub(r"^([\[*])", r"{\1}", escaped.replace("--", "-{}-"))


def _markdown_row(cells: Iterable[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
