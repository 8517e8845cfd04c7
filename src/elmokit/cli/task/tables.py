"""Scores and layer weights as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from elmokit.tasks.comparison import Comparison

BAR = 30
"""Characters of a bar that stands for all."""
SHADES = ("blue", "cyan", "green", "yellow", "magenta")


def scores_table(scores: Mapping[str, float], main: str) -> Table:
    """All scores, the one that counts first and bold; scores of kinds ("f1 PER") a kind a line."""
    split = {name: name.partition(" ") for name in scores}
    of_kind = {name: kind for name, (first, _, kind) in split.items() if kind and first in scores}
    whole = [name for name in sorted(scores, key=lambda name: name != main) if name not in of_kind]
    kinds = list(dict.fromkeys(of_kind.values()))
    columns = [name for name in whole if any(f"{name} {kind}" in scores for kind in kinds)]
    table = Table(box=None, show_header=bool(columns), padding=(0, 3, 0, 0), header_style="dim")
    table.add_column()
    for name in columns or [""]:
        table.add_column(name, justify="right")
    if columns:
        table.add_row("all", *(_number(scores[name]) for name in columns), style="bold")
    for kind in kinds:
        cells = (scores.get(f"{name} {kind}") for name in columns)
        table.add_row(kind, *("" if cell is None else _number(cell) for cell in cells))
    for name in whole:
        if name not in columns:
            table.add_row(name, _number(scores[name]), style="bold" if name == main else "")
    return table


def _number(number: float) -> str:
    counted = number == int(number) and number > 100
    return f"{number:,.0f}" if counted else f"{number:.2f}"


def weights_lines(weights: Mapping[str, Mapping[str, Any]]) -> Iterator[Text]:
    """For each place a bar that is divided as the layers are, as in the paper's figure."""
    for place, learned in weights.items():
        line = Text(f"{place:<7} ")
        for j, share in enumerate(learned["shares"]):
            label = f"{share:.2f}".center(max(4, round(BAR * share)), " ")
            line.append(label, style=f"black on {SHADES[j % len(SHADES)]}")
        line.append(f"  γ {learned['gamma']:.2f}", style="dim")
        line.append("  layers 0 (characters) to the top", style="dim")
        yield line


def comparison_table(comparison: Comparison) -> Table:
    """Baseline and ELMo side by side."""
    from elmokit.tasks.systems import BASELINE, WITH_ELMO

    of = "test" if comparison.tested else "dev"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("training set", "examples", "baseline", "+ ELMo", "gain", "error", "seeds won"):
        table.add_column(name, justify="left" if name == "training set" else "right", no_wrap=True)
    for share in comparison.shares():
        rows = [comparison.row(system, share) for system in (BASELINE, WITH_ELMO)]
        gain = rows[1].mean - rows[0].mean
        examples = next(o.examples for part, o in comparison.outcomes if part == share)
        table.add_row(
            f"{100 * share:g} %",
            f"{examples:,}",
            *(f"{row.mean:.2f} ± {row.spread:.2f}" for row in rows),
            f"{gain:+.2f}",
            _change(-comparison.reduction(share)),
            f"{comparison.wins(share)} of {len(rows[0].scores)}",
        )
    table.title = f"{comparison.settings.task}: {comparison.score} on {of}, mean and spread"
    table.title_justify = "left"
    return table


def _change(percent: float) -> str:
    return f"{round(percent, 1) + 0.0:+.1f} %"  # never -0.0
