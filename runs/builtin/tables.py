"""Markdown tables of the measurements of a model, for its card. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

CONTEXT_WORDS = 6
"""Words shown on each side of a neighbor."""
DIRECTIONS = ("forward", "backward")


def all_tables(measured: Json) -> str:
    """Return all tables, each under a heading."""
    sections = [
        ("Perplexity", perplexity_table(measured)),
        ("Tags", tags_table(measured["tags"])),
        ("Senses", senses_table(measured["senses"])),
        ("Neighbors", neighbors_table(measured["neighbors"])),
    ]
    if "adaptation" in measured:
        sections.append(("Adaptation", adaptation_table(measured["adaptation"])))
    return "\n".join(f"### {title}\n\n{text}\n" for title, text in sections)


def perplexity_table(measured: Json) -> str:
    """Return a table of the perplexity of held-out text, sentence by sentence and running."""
    rows = [
        _perplexity_cells("lm-en-test, every sentence by itself", measured["perplexity"]),
        _perplexity_cells("lm-en-test, running (`--state carry`)", measured["running"]),
    ]
    return markdown_table(["text", "forward", "backward", "mean", "words", "unknown"], rows)


def perplexity_line(name: str, measured: Json) -> str:
    """Return the perplexities of a text in one line."""
    return "  ".join(_perplexity_cells(name, measured))


def tags_table(measured: Json) -> str:
    """Return the tagging accuracy by layer, with the untrained network and the frequent tag."""
    rows = []
    for column, frequent in measured["most frequent"].items():
        for name, frequent_accuracy in frequent.items():
            for network in ("trained", "untrained"):
                scores = {s["layer"]: s for s in measured[network] if s["column"] == column}
                best = max(scores, key=lambda layer: scores[layer]["accuracy"]["dev"])
                cells = []
                for layer, score in scores.items():
                    accuracy = f"{100 * score['accuracy'][name]:.1f}"
                    is_best = network == "trained" and layer == best
                    cells.append(f"**{accuracy}**" if is_best else accuracy)
                last = f"{100 * frequent_accuracy:.1f}" if network == "trained" else ""
                rows.append([f"{column}, {name}", network, *cells, last])
    layers = [s["layer"] for s in measured["trained"] if s["column"] == column]
    titles = ["layer 0: characters", *(f"layer {each}" for each in layers[1:-1]), "all layers"]
    return markdown_table(["tags", "network", *titles, "most frequent tag"], rows)


def senses_table(measured: dict[str, Json]) -> str:
    """Return how well each layer separates the senses of each word."""
    rows = []
    for word, separation in measured.items():
        for network in ("trained", "untrained"):
            for layer in separation[network]:
                if network == "untrained" and layer["layer"] == 0:
                    continue  # the same for every model: one vector for all uses
                rows.append(
                    [
                        f"{word} ({separation['uses']} uses)",
                        network,
                        str(layer["layer"]),
                        f"{100 * layer['accuracy']:.1f} %",
                        f"{layer['within']:.3f}",
                        f"{layer['between']:.3f}",
                    ]
                )
    titles = ["word", "network", "layer", "nearest use has the same sense", "cosine, same sense"]
    return markdown_table([*titles, "cosine, other sense"], rows)


def neighbors_table(measured: Sequence[Json]) -> str:
    """Return the nearest uses of each query."""
    rows = []
    for query in measured:
        words: list[str] = query["sentence"].split()
        position = [word.lower() for word in words].index(query["word"])
        sentence = _bold_in_context(words, position)
        for among, neighbors in query["nearest"].items():
            for one in neighbors:
                use = _bold_in_context(one["words"], one["place"])
                rows.append([sentence, among, f"{one['similarity']:.2f}", use])
                sentence = ""
    return markdown_table(["use", "among", "cosine", "nearest uses"], rows)


def adaptation_table(measured: dict[str, Json]) -> str:
    """Return the perplexities before and after adaptation, on both domains."""
    columns = [(when, direction) for when in ("before", "after") for direction in DIRECTIONS]
    rows = [
        [name, *(f"{perplexities[when][direction]:.1f}" for when, direction in columns)]
        for name, perplexities in measured.items()
    ]
    return markdown_table(["text", *(f"{when}: {way}" for when, way in columns)], rows)


def _perplexity_cells(name: str, measured: Json) -> list[str]:
    numbers = (f"{measured[direction]:.1f}" for direction in (*DIRECTIONS, "mean"))
    return [name, *numbers, f"{measured['words']:,}", f"{100 * measured['oov']:.1f} %"]


def _bold_in_context(words: Sequence[str], position: int) -> str:
    """Return a word in bold, with some words around it."""
    first, last = max(0, position - CONTEXT_WORDS), min(len(words), position + CONTEXT_WORDS + 1)
    before, after = " ".join(words[first:position]), " ".join(words[position + 1 : last])
    text = f"{'… ' if first else ''}{before} **{words[position]}** {after}".strip()
    return text.replace("|", "\\|") + (" …" if last < len(words) else "")


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
