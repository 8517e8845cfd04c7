"""Tables of similarities: between the words of a sentence, and between the uses of a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from elmokit.cli.terminal_text import cut, fit, isolate, printable
from elmokit.probe.excerpt import snippet
from elmokit.text.function_words import FUNCTION_WORDS

if TYPE_CHECKING:
    from elmokit.bilm.weights import FloatArray
    from elmokit.elmo import Elmo, LayerChoice
    from elmokit.probe.uses.collect import CollectedUses

CELL = 5
"""Width of a number in terminal columns; words above it are cut to fit."""
LABEL = 12
"""Width of a word at the beginning of a row at most."""
LONGEST_SHOWN = 40
"""Width of a word in a sentence at most: nobody reads the end of a word of 300 characters."""
NEAREST = 3
"""Number of nearest words that are printed where the whole matrix is too wide."""
MOST_PAIRS = 12
"""Number of pairs of equal words that are printed at most."""
MOST_USES_SHOWN = 40
"""Number of uses of one word that are printed at most."""


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
        line = isolate(" ".join(cut(word, LONGEST_SHOWN) for word in words))
        console.print()
        console.print(
            Text.assemble((f"{number}  ", "bold cyan"), line or "(no words)"),
            Text(str(vectors.shape[1:]), style="dim"),
        )
        if len(words) > 1:
            _print_sentence(console, words, choose(vectors))
    _print_repeated(console, sentences, all_layers)


def print_uses(elmo: Elmo, collected: CollectedUses) -> None:
    """Print each use of a word beside the use that is nearest to it in the top layer.

    Args:
        elmo: The model.
        collected: The uses of the word.
    """
    console = Console(highlight=False)
    uses, top = collected.uses, elmo.layers - 1
    word = printable(collected.word)
    several = "use" if len(uses) == 1 else f"uses, compared by layer {top}"
    console.print(f"“{word}”: {len(uses)} {several}", style="bold")
    if len(uses) == 1:
        console.print(_snippet(console, uses[0].words, uses[0].position, console.width))
        console.print("give more sentences with the word to compare its uses", style="dim")
        return
    sense_width = min(LABEL, max(cell_len(printable(use.sense)) for use in uses))
    room = (console.width - len("cosine") - 6) // 2
    titles = ["use", "nearest use"]
    if sense_width:
        titles = ["sense", "use", "nearest use", "its sense"]
        room -= (max(sense_width, len("sense")) + max(sense_width, len("its sense")) + 4 + 1) // 2
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        table.add_column(title, no_wrap=True)
    table.add_column("cosine", justify="right", no_wrap=True)
    cosines = collected.cosines(top)
    for i, j in list(enumerate(collected.nearest(top)))[:MOST_USES_SHOWN]:
        row = [_snippet(console, use.words, use.position, room) for use in (uses[i], uses[j])]
        if sense_width:
            style = "" if uses[j].sense == uses[i].sense else "bold red"
            row.insert(0, Text(fit(uses[i].sense, sense_width)))
            row.append(Text(fit(uses[j].sense, sense_width), style))
        table.add_row(*row, _cell(cosines[i, j]))
    console.print(table)
    if len(uses) > MOST_USES_SHOWN:
        console.print(f"and {len(uses) - MOST_USES_SHOWN} more uses", style="dim")
    for layer in range(1, elmo.layers):
        if counts := collected.same_sense(layer):
            console.print(
                f"layer {layer}: the nearest use has the same sense for {counts[0]} of {counts[1]}"
            )


def _print_sentence(console: Console, words: Sequence[str], vectors: FloatArray) -> None:
    cosine = _cosines(vectors, vectors)
    label = min(LABEL, max(cell_len(printable(word)) for word in words))
    fits = label + 4 + (CELL + 1) * len(words) <= console.width
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=fits, header_style="dim")
    table.add_column(no_wrap=True, min_width=label)
    if fits:
        for word in words:
            table.add_column(fit(word, CELL), justify="right", no_wrap=True, min_width=CELL)
        for i, word in enumerate(words):
            cells = [Text("·", "dim") if i == j else _cell(c) for j, c in enumerate(cosine[i])]
            table.add_row(fit(word, label), *cells)
    else:
        table.add_column()
        np.fill_diagonal(cosine, -2)
        room = console.width - label - 2
        for i, word in enumerate(words):
            nearest = np.argsort(-cosine[i], kind="stable")[:NEAREST].tolist()
            row = Text("nearest", "dim")
            for j in nearest:
                neighbor = Text.assemble(fit(words[j], LABEL).rstrip(), " ", _cell(cosine[i, j]))
                # As many as the line has room for, but at least one.
                if j == nearest[0] or row.cell_len + neighbor.cell_len + 3 <= room:
                    row.append("   ").append_text(neighbor)
            table.add_row(fit(word, label), row)
    console.print(table)


def _print_repeated(
    console: Console, sentences: Sequence[Sequence[str]], layers: Sequence[FloatArray]
) -> None:
    """Print the similarity of each two uses of a word, layer by layer.

    Function words are left out, unless no other word is repeated.
    """
    pairs = _repeated_pairs(sentences, lambda word: word not in FUNCTION_WORDS)
    pairs = pairs or _repeated_pairs(sentences, lambda word: True)
    if not pairs:
        return
    console.print("\nThe same word in two places: cosine similarity of its vectors", style="bold")
    rows = []
    for word, (s1, w1), (s2, w2) in pairs:
        one, two = layers[s1][:, w1], layers[s2][:, w2]
        cosines = [float(_cosines(a[None], b[None])[0, 0]) for a, b in zip(one, two, strict=True)]
        rows.append((cosines[-1], word, (s1, w1), (s2, w2), cosines))
    rows.sort()  # the least similar first
    shown = rows[:MOST_PAIRS]
    word_width = min(LABEL, max(cell_len(printable(word)) for _, word, *_ in shown))
    room = _room_for_snippets(console, len(layers[0]), max(word_width, 4) + 2)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("word", "here", "and here"):
        table.add_column(title, no_wrap=True)
    _add_layer_columns(table, len(layers[0]))
    for _, word, first, second, cosines in shown:
        snippets = [_snippet(console, sentences[s], w, room) for s, w in (first, second)]
        table.add_row(fit(word, word_width), *snippets, *map(_cell, cosines))
    console.print(table)
    if len(rows) > MOST_PAIRS:
        console.print(
            f"and {len(rows) - MOST_PAIRS} more pairs, which are more similar", style="dim"
        )


def _repeated_pairs(
    sentences: Sequence[Sequence[str]], wanted: Callable[[str], bool]
) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Return each two places (sentence, word) of the wanted words that occur more than once."""
    uses: dict[str, list[tuple[int, int]]] = {}
    for s, words in enumerate(sentences):
        for w, word in enumerate(words):
            if any(c.isalnum() for c in word) and wanted(word.lower()):
                uses.setdefault(word.lower(), []).append((s, w))
    return [
        (word, a, b)
        for word, places in uses.items()
        for i, a in enumerate(places)
        for b in places[i + 1 :]
    ]


def _add_layer_columns(table: Table, layers: int) -> None:
    table.add_column("layer 0", justify="right", no_wrap=True)
    for layer in range(1, layers):
        table.add_column(f"LSTM {layer}", justify="right", no_wrap=True)


def _room_for_snippets(console: Console, layers: int, other_columns: int) -> int:
    """Return the width of each of two snippets beside the similarities of all layers."""
    numbers = len("layer 0  ") + (layers - 1) * len("LSTM 1  ")
    return max(16, (console.width - numbers - other_columns - 4) // 2)


def _snippet(console: Console, words: Sequence[str], position: int, width: int) -> Text:
    """Return a word with its neighbors, emphasized: in a terminal by its style, else by marks."""
    mark = "" if console.is_terminal else "*"
    shown = [cut(word, LONGEST_SHOWN) for word in words]
    text = snippet(shown, position, width, cell_len, mark)
    text = fit(text, width)
    styled = Text(text)
    if not mark:
        styled.highlight_words([shown[position]], "bold")
    return styled


def _cosines(a: FloatArray, b: FloatArray) -> FloatArray:
    norms = np.linalg.norm(a, axis=-1)[:, None] * np.linalg.norm(b, axis=-1)
    cosines: FloatArray = a @ b.T / np.maximum(norms, np.float32(1e-12))
    return cosines


def _cell(cosine: float) -> Text:
    """Return a similarity as text; the higher, the brighter."""
    shade = round(max(0.0, min(1.0, float(cosine))) * 4)
    style = ("dim", "blue", "cyan", "green", "bold yellow")[shade]
    return Text(f"{cosine:.2f}", style)
