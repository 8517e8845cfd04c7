"""Write the tables of docs/when.md from the results of `run.py`, and say who is better at what.

    python benchmarks/alternatives/page.py build/alternatives/results.json

Measures nothing. Replaces the text between the two markers in docs/when.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from systems import SYSTEMS

PAGE = Path(__file__).parents[2] / "docs" / "when.md"
BEGIN, END = "<!-- alternatives: begin -->", "<!-- alternatives: end -->"
ROWS = {
    "words_per_second": ("words per second, sentences as they come", ",.0f"),
    "sentence_ms": ("one sentence of 20 words, ms", ".3g"),
    "first_vector_s": ("from the start of Python to the first vector, s", ".2f"),
    "memory_mb": ("peak memory, MB", ",.0f"),
    "disk_mb": ("model on disk, MB", ",.0f"),
    "dim": ("numbers per vector", ",d"),
}


def main() -> None:
    """Update the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="results.json of run.py")
    results = json.loads(parser.parse_args().results.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{render(results)}{END}{after}", encoding="utf-8")


def render(results: dict[str, Any]) -> str:
    """Return the tables, each after the sentence that says what to see in it."""
    systems: dict[str, dict[str, Any]] = results["systems"]
    machine = results["machine"]
    parts = []
    if verdicts := compare(systems):
        parts.append("\n".join(f"- {verdict}" for verdict in verdicts))
    quality = quality_table(systems)
    if quality:
        parts.append(quality)
    head = "| | " + " | ".join(SYSTEMS[name] for name in systems) + " |"
    lines = [head, "|---|" + "--:|" * len(systems)]
    for key, (title, pattern) in ROWS.items():
        cells = [format(values[key], pattern) for values in systems.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    parts.append("\n".join(lines))
    parts.append(
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads; medians "
        f"of {results['rounds']} interleaved rounds; elmokit {results['elmokit']}. The published "
        "sizes have random weights: they show speed, not quality."
    )
    return "\n" + "\n\n".join(parts) + "\n\n"


def compare(systems: dict[str, dict[str, Any]]) -> list[str]:
    """Return who is better at what, ELMo's built-in model or the transformer, with the numbers."""
    if not {"builtin", "minilm"} <= set(systems):
        return []
    elmo, other = systems["builtin"], systems["minilm"]
    verdicts = []
    for task, what in (("tags", "Parts of speech"), ("senses", "Word senses")):
        if task in elmo and task in other:
            scores = {"ELMo": _chosen(elmo[task])[1], "MiniLM": _chosen(other[task])[1]}
            verdicts.append(_verdict(what, scores, "{:.1%}", larger=True))
    for key, what, pattern, larger in (
        ("words_per_second", "Words per second", "{:,.0f}", True),
        ("sentence_ms", "One sentence", "{:.1f} ms", False),
        ("first_vector_s", "First vector", "{:.2f} s", False),
        ("memory_mb", "Memory", "{:,.0f} MB", False),
        ("disk_mb", "Disk", "{:,.0f} MB", False),
    ):
        verdicts.append(_verdict(what, {"ELMo": elmo[key], "MiniLM": other[key]}, pattern, larger))
    return verdicts


def _chosen(probe: dict[str, Any]) -> tuple[int, float]:
    """Return the layer that is best on the development data, and its score on the test data."""
    layer = max(range(len(probe["dev"])), key=lambda each: probe["dev"][each])
    return layer, probe["layers"][layer]


def _verdict(what: str, scores: dict[str, float], pattern: str, larger: bool) -> str:
    best = (max if larger else min)(scores, key=lambda name: scores[name])
    rest = next(name for name in scores if name != best)
    names = {"ELMo": "the built-in ELMo", "MiniLM": "the transformer"}
    if scores[best] == scores[rest]:
        return f"**{what}**: both {pattern.format(scores[best])}."
    return (
        f"**{what}**: {names[best]} is better, {pattern.format(scores[best])} against "
        f"{pattern.format(scores[rest])}."
    )


def quality_table(systems: dict[str, dict[str, Any]]) -> str:
    """Return the table of the probes: the chosen layer of each system, and which one it is."""
    rows = []
    for task, title in (("tags", "parts of speech, accuracy"), ("senses", "word senses, F1")):
        measured = {name: values[task] for name, values in systems.items() if task in values}
        if not measured:
            continue
        cells = []
        for name in systems:
            if name not in measured:
                cells.append("")
                continue
            layer, score = _chosen(measured[name])
            which = f" (layer {layer})" if len(measured[name]["dev"]) > 1 else ""
            cells.append(f"{score:.1%}{which}")
        rows.append((title, cells))
    if not rows:
        return ""
    names = [name for i, name in enumerate(systems) if any(cells[i] for _, cells in rows)]
    keep = [list(systems).index(name) for name in names]
    lines = ["| | " + " | ".join(SYSTEMS[name] for name in names) + " |"]
    lines.append("|---|" + "--:|" * len(names))
    lines += [f"| {title} | " + " | ".join(cells[i] for i in keep) + " |" for title, cells in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
