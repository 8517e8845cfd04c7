"""Scores and weights as people read them."""

from __future__ import annotations

from rich.console import Console

from elmokit.cli.task.tables import scores_table, weights_lines


def printed(what: object) -> list[list[str]]:
    console = Console(width=100, record=True)
    console.print(what)
    return [line.split() for line in console.export_text().splitlines()]


def test_the_score_that_counts_comes_first() -> None:
    scores = {"mean absolute error": 0.5, "accuracy": 41.236, "sentences": 2210.0}
    lines = printed(scores_table(scores, "accuracy"))
    assert lines[0] == ["accuracy", "41.24"] and lines[1] == ["mean", "absolute", "error", "0.50"]
    assert lines[2] == ["sentences", "2,210"]


def test_kinds_have_a_line_each() -> None:
    scores = {"f1": 50.0, "recall": 40.0, "entities": 12.0, "f1 PER": 60.0, "recall PER": 30.0}
    lines = printed(scores_table(scores, "f1"))
    assert lines == [
        ["f1", "recall"],
        ["all", "50.00", "40.00"],
        ["PER", "60.00", "30.00"],
        ["entities", "12.00"],
    ]


def test_weights_are_bars() -> None:
    (line,) = weights_lines({"input": {"shares": [0.2, 0.5, 0.3], "gamma": 1.25}})
    assert line.plain.split()[:6] == ["input", "0.20", "0.50", "0.30", "γ", "1.25"]
    widths = [len(line.plain[span.start : span.end]) for span in line.spans[:3]]
    assert widths == [6, 15, 9]
