"""What was measured, as Markdown tables for a model card. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

AROUND = 6
"""Words shown on each side of a neighbor."""


def everything(measured: Json) -> str:
    """All tables, each under a heading."""
    parts = [("Perplexity", perplexity(measured["perplexity"])), ("Tags", tags(measured["tags"]))]
    parts.append(("Senses", senses(measured["senses"])))
    parts.append(("Neighbors", neighbors(measured["neighbors"])))
    if "adaptation" in measured:
        parts.append(("Adaptation", adaptation(measured["adaptation"])))
    return "\n".join(f"### {title}\n\n{text}\n" for title, text in parts)


def perplexity(found: Json) -> str:
    """Of held-out text."""
    rows = [_perplexities("lm-en-test", found)]
    return table(["text", "forward", "backward", "mean", "words", "unknown"], rows)


def perplexity_row(name: str, found: Json) -> str:
    """The same in a line."""
    return "  ".join(_perplexities(name, found))


def tags(found: Json) -> str:
    """Accuracy by layer, beside the untrained network and the most frequent tag."""
    rows = []
    for column, frequent in found["most frequent"].items():
        for name, value in frequent.items():
            for kind in ("trained", "untrained"):
                scores = {s["layer"]: s for s in found[kind] if s["column"] == column}
                best = max(scores, key=lambda layer: scores[layer]["accuracy"]["dev"])
                cells = []
                for layer, score in scores.items():
                    shown = f"{100 * score['accuracy'][name]:.1f}"
                    cells.append(f"**{shown}**" if kind == "trained" and layer == best else shown)
                base = f"{100 * value:.1f}" if kind == "trained" else ""
                rows.append([f"{column}, {name}", kind, *cells, base])
    layers = [s["layer"] for s in found["trained"] if s["column"] == column]
    titles = ["layer 0: characters", *(f"layer {each}" for each in layers[1:-1]), "all layers"]
    return table(["tags", "network", *titles, "most frequent tag"], rows)


def senses(found: dict[str, Json]) -> str:
    """How far apart, by layer."""
    rows = []
    for word, about in found.items():
        for kind in ("trained", "untrained"):
            for layer in about[kind]:
                if kind == "untrained" and layer["layer"] == 0:
                    continue  # the same for every model: one vector for all uses
                rows.append(
                    [
                        f"{word} ({about['uses']} uses)",
                        kind,
                        str(layer["layer"]),
                        f"{100 * layer['accuracy']:.1f} %",
                        f"{layer['within']:.3f}",
                        f"{layer['between']:.3f}",
                    ]
                )
    titles = ["word", "network", "layer", "nearest use has the same sense", "cosine, same sense"]
    return table([*titles, "cosine, other sense"], rows)


def neighbors(found: Sequence[Json]) -> str:
    """The nearest uses of each query."""
    rows = []
    for query in found:
        asked = _marked(query["sentence"].split(), _place(query))
        for among, nearest in query["nearest"].items():
            for one in nearest:
                shown = _marked(one["words"], one["place"])
                rows.append([asked, among, f"{one['similarity']:.2f}", shown])
                asked = ""
    return table(["use", "among", "cosine", "nearest uses"], rows)


def adaptation(found: dict[str, Json]) -> str:
    """Before and after, on both domains."""
    rows = [
        [name, *(f"{about[when][way]:.1f}" for when in ("before", "after") for way in _WAYS)]
        for name, about in found.items()
    ]
    titles = [f"{when}: {way}" for when in ("before", "after") for way in _WAYS]
    return table(["text", *titles], rows)


_WAYS = ("forward", "backward")


def _perplexities(name: str, found: Json) -> list[str]:
    numbers = (f"{found[way]:.1f}" for way in (*_WAYS, "mean"))
    return [name, *numbers, f"{found['words']:,}", f"{100 * found['oov']:.1f} %"]


def _place(query: Json) -> int:
    words: list[str] = query["sentence"].lower().split()
    return words.index(query["word"])


def _marked(words: Sequence[str], place: int) -> str:
    """A word in bold, with some words around it."""
    first, last = max(0, place - AROUND), min(len(words), place + AROUND + 1)
    before, behind = " ".join(words[first:place]), " ".join(words[place + 1 : last])
    whole = f"{'… ' if first else ''}{before} **{words[place]}** {behind}".strip()
    return whole.replace("|", "\\|") + (" …" if last < len(words) else "")


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
