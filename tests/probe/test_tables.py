"""Tables as documents and pages."""

from __future__ import annotations

from elmokit.probe.tables import (
    Table,
    table_to_csv,
    table_to_html,
    table_to_latex,
    table_to_markdown,
)

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


def test_csv() -> None:
    table = Table(
        "T",
        ["", "n", "F1", "error", "n", "text"],
        [
            ["a, b", "1,234,567", "90.1 ± 0.2", "-1.5 %", "−2", "2 of 3"],
            ["c", "–", "+1.0", "", "+0.5", "12,34"],
        ],
    )
    assert table_to_csv(table).splitlines() == [
        "name,n,F1,F1 ±,error (%),n 5,text",
        '"a, b",1234567,90.1,0.2,-1.5,-2,2 of 3',
        'c,,1.0,,,0.5,"12,34"',
    ]


def test_latex() -> None:
    table = Table(
        "50 % of “A_B”",
        ["p ≤ 0.05", "x"],
        [["[1] a & b -- c", "-1.0"], ["\\ {~^} <tag>", "2 ± 1"]],
        "Cost: $5 #1 …",
        bold=[(1, 1)],
    )
    assert table_to_latex(table, "tab:x").splitlines() == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{50 \% of ``A\_B''}",
        r"  \label{tab:x}",
        r"  \begin{tabular}{lr}",
        r"    \toprule",
        r"    p $\le$ 0.05 & x \\",
        r"    \midrule",
        r"    {[}1] a \& b -{}- c & $-$1.0 \\",
        r"    \textbackslash{} \{\textasciitilde{}\textasciicircum{}\} "
        r"\textless{}tag\textgreater{} & \textbf{2 $\pm$ 1} \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"  \par\smallskip\footnotesize Cost: \$5 \#1 \dots{}",
        r"\end{table}",
    ]
    assert "label" not in table_to_latex(TABLE)


def test_latex_uses_no_command_of_another_font_encoding() -> None:
    r"""\textquotedbl stops a plain article: "unavailable in encoding OT1"."""
    table = Table('A "word"', ["use"], [['the "bank"']])
    assert "the ''bank''" in table_to_latex(table) and "quotedbl" not in table_to_latex(table)
