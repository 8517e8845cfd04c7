"""Scores, comparisons and layer weights in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from elmokit.tasks.comparison import Comparison

BAR = 30
"""Characters of a whole bar."""
LAYER_COLORS = ("blue", "cyan", "green", "yellow", "magenta")
"""Colors of the layers, from the bottom."""


def scores_table(scores: Mapping[str, float], main: str) -> Table:
    """Return a table of all scores, the main score first and bold.

    Scores by label (`f1 PER`) have one row per label.
    """
    split = {name: name.partition(" ") for name in scores}
    label_of = {
        name: label for name, (first, _, label) in split.items() if label and first in scores
    }
    overall = [n for n in sorted(scores, key=lambda name: name != main) if n not in label_of]
    labels = list(dict.fromkeys(label_of.values()))
    columns = [name for name in overall if any(f"{name} {label}" in scores for label in labels)]
    table = Table(box=None, show_header=bool(columns), padding=(0, 3, 0, 0), header_style="dim")
    table.add_column()
    for name in columns or [""]:
        table.add_column(name, justify="right")
    if columns:
        table.add_row("all", *(_format_number(scores[name]) for name in columns), style="bold")
    for label in labels:
        cells = (scores.get(f"{name} {label}") for name in columns)
        table.add_row(label, *("" if cell is None else _format_number(cell) for cell in cells))
    for name in overall:
        if name not in columns:
            table.add_row(name, _format_number(scores[name]), style="bold" if name == main else "")
    return table


def _format_number(number: float) -> str:
    is_count = number == int(number) and number > 100
    return f"{number:,.0f}" if is_count else f"{number:.2f}"


def weights_lines(weights: Mapping[str, Mapping[str, Any]]) -> Iterator[Text]:
    """Yield, for each place where ELMo enters, a bar divided by the layer weights."""
    for place, learned in weights.items():
        line = Text(f"{place:<7} ")
        for j, share in enumerate(learned["shares"]):
            label = f"{share:.2f}".center(max(4, round(BAR * share)), " ")
            line.append(label, style=f"black on {LAYER_COLORS[j % len(LAYER_COLORS)]}")
        line.append(f"  γ {learned['gamma']:.2f}", style="dim")
        line.append("  layers 0 (characters) to the top", style="dim")
        yield line


def comparison_table(comparison: Comparison) -> Table:
    """Return a table with the baseline and ELMo side by side, one row per share."""
    from elmokit.tasks.systems import BASELINE, WITH_ELMO

    of = "test" if comparison.tested else "dev"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("training set", "examples", "baseline", "+ ELMo", "gain", "error", "seeds won"):
        table.add_column(name, justify="left" if name == "training set" else "right", no_wrap=True)
    for share in comparison.shares():
        rows = [comparison.system_scores(system, share) for system in (BASELINE, WITH_ELMO)]
        gain = rows[1].mean - rows[0].mean
        examples = next(o.examples for part, o in comparison.outcomes if part == share)
        table.add_row(
            f"{100 * share:g} %",
            f"{examples:,}",
            *(f"{row.mean:.2f} ± {row.spread:.2f}" for row in rows),
            f"{gain:+.2f}",
            _format_change(-comparison.error_reduction(share)),
            f"{comparison.wins(share)} of {len(rows[0].scores)}",
        )
    table.title = (
        f"{comparison.settings.task}: {comparison.score} on {of}, mean ± standard deviation"
    )
    table.title_justify = "left"
    return table


def _format_change(percent: float) -> str:
    return f"{round(percent, 1) + 0.0:+.1f} %"  # never -0.0
