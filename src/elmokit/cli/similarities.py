"""Tables of similarities: between the words of a sentence, and between two uses of a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from elmokit.bilm.weights import FloatArray
    from elmokit.elmo import Elmo, LayerChoice

CELL = 5
"""Width of a number in terminal columns; words above it are cut to fit."""
NEAREST = 3
"""Number of nearest words that are printed where the whole matrix is too wide."""
MOST_PAIRS = 12
"""Number of pairs of equal words that are printed at most."""


def print_similarities(elmo: Elmo, sentences: Sequence[Sequence[str]], layers: LayerChoice) -> None:
    """Print the similarities within each sentence, then those of words that occur twice.

    Args:
        elmo: The model.
        sentences: The words of each sentence.
        layers: The vectors that are compared within a sentence; for `"all"`, the mix of them.
    """
    choose = elmo.layer_selector("mix" if layers == "all" else layers)
    console = Console(highlight=False)
    all_layers = list(elmo.stream(sentences, layers="all"))
    names = {"mix": "the mix of all layers", "all": "the mix of all layers", "top": "the top layer"}
    console.print(
        f"{elmo.layers} layers of size {elmo.dim}; cosine similarity of words by "
        f"{names.get(str(layers), f'layer {layers}')}",
        style="dim",
    )
    for number, (words, vectors) in enumerate(zip(sentences, all_layers, strict=True), start=1):
        console.print()
        console.print(
            Text.assemble((f"{number}  ", "bold cyan"), " ".join(words) or "(no words)"),
            Text(str(vectors.shape[1:]), style="dim"),
        )
        if len(words) > 1:
            _print_sentence(console, words, choose(vectors))
    _print_repeated(console, sentences, all_layers)


def _print_sentence(console: Console, words: Sequence[str], vectors: FloatArray) -> None:
    cosine = _cosines(vectors, vectors)
    label = min(12, max(map(len, words)))
    fits = label + 4 + (CELL + 1) * len(words) <= console.width
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=fits, header_style="dim")
    table.add_column(no_wrap=True, max_width=label, overflow="ellipsis")
    if fits:
        for word in words:
            table.add_column(_cut(word, CELL), justify="right", no_wrap=True, min_width=CELL)
        for i, word in enumerate(words):
            cells = [Text("·", "dim") if i == j else _cell(c) for j, c in enumerate(cosine[i])]
            table.add_row(_cut(word, label), *cells)
    else:
        table.add_column()
        np.fill_diagonal(cosine, -2)
        for i, word in enumerate(words):
            nearest = np.argsort(-cosine[i], kind="stable")[:NEAREST].tolist()
            row = Text("nearest  ", "dim")
            for j in nearest:
                row.append_text(Text.assemble(words[j], " ", _cell(cosine[i, j]), "   "))
            table.add_row(_cut(word, label), row)
    console.print(table)


def _print_repeated(
    console: Console, sentences: Sequence[Sequence[str]], layers: Sequence[FloatArray]
) -> None:
    """Print the similarity of each two uses of a word, layer by layer."""
    uses: dict[str, list[tuple[int, int]]] = {}
    for s, words in enumerate(sentences):
        for w, word in enumerate(words):
            if any(c.isalnum() for c in word):
                uses.setdefault(word.lower(), []).append((s, w))
    pairs = [
        (word, a, b)
        for word, positions in uses.items()
        for i, a in enumerate(positions)
        for b in positions[i + 1 :]
    ]
    if not pairs:
        return
    console.print(
        "\nThe same word in two places: cosine similarity of its two vectors", style="bold"
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("word", "first", "second", "word vector"):
        table.add_column(title, no_wrap=True)
    for layer in range(1, len(layers[0])):
        table.add_column(f"LSTM {layer}", justify="right")
    rows = []
    for word, (s1, w1), (s2, w2) in pairs:
        one, two = layers[s1][:, w1], layers[s2][:, w2]
        cosines = [float(_cosines(a[None], b[None])[0, 0]) for a, b in zip(one, two, strict=True)]
        rows.append((cosines[-1], word, (s1, w1), (s2, w2), cosines))
    rows.sort()  # the least similar first
    for _, word, first, second, cosines in rows[:MOST_PAIRS]:
        positions = [f"sentence {s + 1}, word {w + 1}" for s, w in (first, second)]
        table.add_row(word, *positions, *map(_cell, cosines))
    console.print(table)
    if len(rows) > MOST_PAIRS:
        console.print(
            f"and {len(rows) - MOST_PAIRS} more pairs, which are more similar", style="dim"
        )


def _cosines(a: FloatArray, b: FloatArray) -> FloatArray:
    norms = np.linalg.norm(a, axis=-1)[:, None] * np.linalg.norm(b, axis=-1)
    cosines: FloatArray = a @ b.T / np.maximum(norms, np.float32(1e-12))
    return cosines


def _cell(cosine: float) -> Text:
    """Return a similarity as text; the higher, the brighter."""
    shade = round(max(0.0, min(1.0, float(cosine))) * 4)
    style = ("dim", "blue", "cyan", "green", "bold yellow")[shade]
    return Text(f"{cosine:.2f}", style)


def _cut(word: str, width: int) -> str:
    return word if len(word) <= width else word[: width - 1] + "…"
