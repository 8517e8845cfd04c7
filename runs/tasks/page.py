"""Write the tables and the figure of docs/tasks.md, from finished comparisons.

    python runs/tasks/page.py WORK_DIR --out tables.md --picture tasks.svg

Reads WORK_DIR/*/comparison.json, as `elmo task compare` writes them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]


class Known(NamedTuple):
    """The names of a comparison, and the paper's result for it."""

    title: str
    """Name of the task."""
    data: str
    """Name of the dataset."""
    paper: str
    """The paper's relative error reduction, and its dataset if that is another one."""


KNOWN = {
    "squad": Known("Question answering", "SQuAD 1.1, 38 articles", "24.9 %"),
    "sick": Known("Entailment", "SICK", "5.8 % (SNLI)"),
    "srl": Known("Semantic roles", "English Web Treebank", "17.2 % (OntoNotes)"),
    "coref": Known("Coreference", "LitBank", "9.8 % (OntoNotes)"),
    "ner": Known("Named entities", "CoNLL-2003", "21 %"),
    "sst5": Known("Sentiment", "SST-5", "6.8 %"),
}


def main() -> None:
    """Read the comparisons and write the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    comparisons = read(arguments.work)
    arguments.out.write_text(tables(comparisons), encoding="utf-8")
    if arguments.picture:
        arguments.picture.write_text(picture(comparisons), encoding="utf-8")


def read(work: Path) -> dict[str, Json]:
    """Return the comparisons in a directory by name, in the order of the paper's table."""
    return {
        name: json.loads((work / name / "comparison.json").read_text(encoding="utf-8"))
        for name in KNOWN
        if (work / name / "comparison.json").exists()
    }


def tables(comparisons: dict[str, Json]) -> str:
    """Return all tables as Markdown, and what determined them."""
    return "\n".join(
        [
            *("<!-- whole -->", *whole(comparisons), ""),
            *("<!-- small -->", *small(comparisons), ""),
            *("<!-- weights -->", *weights(comparisons), ""),
            *("<!-- signature -->", *signature(comparisons), ""),
        ]
    )


def whole(comparisons: dict[str, Json]) -> list[str]:
    """Return the table of the baseline and ELMo with the whole training set."""
    lines = [
        "| task | data | training | score | baseline | + ELMo | gain | error | the paper's | seeds "
        "won |",
        "|---|---|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, numbers in comparisons.items():
        row = next(row for row in numbers["rows"] if row["share"] == 1)
        baseline, elmo = row["baseline"], row["elmo"]
        known = KNOWN[name]
        lines.append(
            f"| {known.title} | {known.data} | {_examples(numbers, 1):,} | {numbers['score']} "
            f"| {_spread(baseline)} | {_spread(elmo)} | {elmo['mean'] - baseline['mean']:+.2f} "
            f"| {_error(row)} | −{known.paper} "
            f"| {_won(row)} of {len(elmo['scores'])} |"
        )
    return lines


def small(comparisons: dict[str, Json]) -> list[str]:
    """Return the table of the gain by size of the training set."""
    lines = [
        "| data | part | examples | baseline | + ELMo | gain | error |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, numbers in comparisons.items():
        if len(numbers["rows"]) < 2:
            continue
        for row in numbers["rows"]:
            baseline, elmo = row["baseline"], row["elmo"]
            lines.append(
                f"| {KNOWN[name].data} | {100 * row['share']:g} % "
                f"| {_examples(numbers, row['share']):,} | {_spread(baseline)} | {_spread(elmo)} "
                f"| {elmo['mean'] - baseline['mean']:+.2f} "
                f"| {_error(row)} |"
            )
    return lines


def weights(comparisons: dict[str, Json]) -> list[str]:
    """Return the table of the layer weights at each place where ELMo enters."""
    lines = ["| data | placement | characters | LSTM 1 | LSTM 2 | γ |", "|---|---|--:|--:|--:|--:|"]
    for name, numbers in comparisons.items():
        for place, learned in numbers["weights"].items():
            shares = " | ".join(f"{share:.2f}" for share in learned["shares"])
            lines.append(f"| {KNOWN[name].data} | {place} | {shares} | {learned['gamma']:.2f} |")
    return lines


def signature(comparisons: dict[str, Json]) -> list[str]:
    """Return a line with versions, models and data that the numbers depend on."""
    models = {numbers["biLM"][:12] for numbers in comparisons.values()}
    versions = {numbers["elmokit"] for numbers in comparisons.values()}
    data = ", ".join(
        f"{name} {numbers['data']['test'][:8]}" for name, numbers in comparisons.items()
    )
    return [
        f"elmokit {', '.join(sorted(versions))}, biLM {', '.join(sorted(models))}, "
        f"test data {data}."
    ]


def picture(comparisons: dict[str, Json]) -> str:
    """Return an SVG with the scores of the baseline and of ELMo for each task; seeds are faint."""
    step, left, width, top = 40, 190, 440, 62
    lowest, highest = 30, 100
    bottom = top + step * len(comparisons) - 12

    def x(score: float) -> float:
        return round(left + width * (score - lowest) / (highest - lowest), 1)

    rows = [
        part
        for tick in range(40, highest + 1, 10)
        for part in (
            f'<line x1="{x(tick)}" x2="{x(tick)}" y1="{top - 18}" y2="{bottom}" class="a"/>',
            f'<text x="{x(tick)}" y="{bottom + 16}" class="n s">{tick}</text>',
        )
    ]
    for k, (name, numbers) in enumerate(comparisons.items()):
        row = next(row for row in numbers["rows"] if row["share"] == 1)
        y = top + step * k
        means = [row[system]["mean"] for system in ("baseline", "elmo")]
        scores = [*row["baseline"]["scores"], *row["elmo"]["scores"]]
        rows += [
            f'<text x="{left - 16}" y="{y - 1}" class="e">{KNOWN[name].title}</text>',
            f'<text x="{left - 16}" y="{y + 13}" class="e s">{KNOWN[name].data}</text>',
            f'<line x1="{x(means[0])}" x2="{x(means[1])}" y1="{y}" y2="{y}" class="g"/>',
            f'<text x="{x(min(scores)) - 11}" y="{y + 4}" class="e v">{means[0]:.1f}</text>',
            f'<text x="{x(max(scores)) + 11}" y="{y + 4}" class="v">{means[1]:.1f}</text>',
        ]
        for system, mean in zip(("baseline", "elmo"), means, strict=True):
            rows += [
                f'<circle cx="{x(score)}" cy="{y}" r="3" class="{system} f"/>'
                for score in row[system]["scores"]
            ]
            rows.append(f'<circle cx="{x(mean)}" cy="{y}" r="6" class="{system}"/>')
    style = (
        "text{font:13px system-ui,sans-serif;fill:#1f2328}.s,.v{font-size:11px}"
        ".e{text-anchor:end}.n{text-anchor:middle}.s{fill:#6e7781}"
        ".a{stroke:#d8dee4}.g{stroke:#1a7f64;stroke-width:3}"
        ".baseline{fill:#8c959f}.elmo{fill:#1a7f64}.f{opacity:.35}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#8d96a0}.a{stroke:#30363d}}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 40} '
            f'{bottom + 24}" role="img" aria-label="Scores without and with ELMo on each task">',
            f"<style>{style}</style>",
            f'<circle cx="{left + 6}" cy="18" r="6" class="baseline"/>',
            f'<text x="{left + 18}" y="22">baseline</text>',
            f'<circle cx="{left + 106}" cy="18" r="6" class="elmo"/>',
            f'<text x="{left + 118}" y="22">+ ELMo</text>',
            f'<text x="{left + 190}" y="22" class="s">score of each task on its test set</text>',
            *rows,
            "</svg>\n",
        ]
    )


def _spread(system: Json) -> str:
    if len(system["scores"]) == 1:
        return f"{system['mean']:.2f}"
    return f"{system['mean']:.2f} ± {system['spread']:.2f}"


def _error(row: Json) -> str:
    return f"{-row['relative_error_reduction']:+.1f} %".replace("-", "−")


def _won(row: Json) -> int:
    pairs = zip(row["baseline"]["scores"], row["elmo"]["scores"], strict=True)
    return sum(elmo > baseline for baseline, elmo in pairs)


def _examples(numbers: Json, share: float) -> int:
    examples: int = next(run["examples"] for run in numbers["runs"] if run["share"] == share)
    return examples


if __name__ == "__main__":
    main()
