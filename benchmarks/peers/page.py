"""Write docs/speed.svg and the tables of docs/speed.md from the results of `run.py`.

    python benchmarks/peers/run.py small original --json figures.json
    python benchmarks/peers/page.py figures.json

Measures nothing. Replaces the text between the two markers in docs/speed.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from run import EXTRA_ROWS, SCENARIOS, fastest_peer, formatted, speed_up

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
COLORS = {
    "elmokit float32": "#2f6fb3",
    "elmokit bfloat16": "#5791cc",
    "elmokit int8": "#7fb2e5",
    "elmokit reference": "#9aa5b1",
}
PEER_COLOR = "#d9a441"
BAR, GAP, LEFT, WIDTH = 16, 5, 250, 860


def main() -> None:
    """Update the page and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("figures", type=Path, help="Results of run.py --json.")
    figures = json.loads(parser.parse_args().figures.read_text())
    page = DOCS / "speed.md"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{tables(figures)}{END}{after}", encoding="utf-8")
    (DOCS / "speed.svg").write_text(picture(figures), encoding="utf-8")


def tables(figures: dict[str, Any]) -> str:
    """Return one table per size: medians and, in brackets, speed relative to the fastest peer."""
    machine = figures["machine"]
    lines = [
        f"\n{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads; "
        f"elmokit {figures['elmokit']}; vectors compared before anything was timed.\n"
    ]
    for size, results in figures["sizes"].items():
        lines += [f"\n**{size}**\n", "| | " + " | ".join(results) + " |"]
        lines.append("|---|" + "---:|" * len(results))
        for scenario, unit in SCENARIOS.items():
            best = fastest_peer(results, scenario)
            cells = [
                formatted(values[scenario], unit)
                + (f" ({speed_up(values[scenario], best, unit):.1f}×)" if best else "")
                for values in results.values()
            ]
            lines.append(f"| {scenario}, {unit} | " + " | ".join(cells) + " |")
        for key, (title, pattern) in EXTRA_ROWS.items():
            cells = [format(values[key], pattern) for values in results.values()]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def picture(figures: dict[str, Any]) -> str:
    """Return a bar chart (SVG) of the speed relative to the fastest peer, by size and scenario."""
    rows: list[tuple[str, str, float]] = []
    for size, results in figures["sizes"].items():
        for scenario, unit in SCENARIOS.items():
            best = fastest_peer(results, scenario)
            if best is None:
                continue
            for name, values in results.items():
                rows.append((f"{size}: {scenario}", name, speed_up(values[scenario], best, unit)))
    longest = max((ratio for *_, ratio in rows), default=1.0)
    scale = (WIDTH - LEFT - 150) / longest
    parts, y, title = [], 34, ""
    for group, name, ratio in rows:
        if group != title:
            y += 14
            parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" class="t">{escape(group)}</text>')
            title = group
        color = COLORS.get(name, PEER_COLOR)
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{max(1, ratio * scale):.1f}" height="{BAR}" '
            f'fill="{color}"/><text x="{LEFT + ratio * scale + 6:.1f}" y="{y + 12}" class="v">'
            f"{ratio:.1f}× {escape(name)}</text>"
        )
        y += BAR + GAP
    line = LEFT + scale
    parts.append(f'<line x1="{line:.1f}" x2="{line:.1f}" y1="30" y2="{y}" stroke="#888"/>')
    head = "How many times as fast as the fastest other implementation, in the same run"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 16}" '
        'font-family="system-ui, sans-serif" font-size="12">'
        "<style>.t{text-anchor:end;fill:#333}.v{fill:#333}.h{font-size:14px;fill:#222}</style>"
        f'<rect width="{WIDTH}" height="{y + 16}" fill="#fff"/>'
        f'<text x="16" y="22" class="h">{head}</text>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    main()
