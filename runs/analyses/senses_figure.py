"""Draw the uses of a word in sentences of known sense: the figure of the README.

    python runs/analyses/senses_figure.py runs/builtin/senses/bank.tsv --word bank --out bank.svg

Each line of the file has a sense and a sentence, separated by a tab. Every use of the word is a
dot, placed by the first two principal components of its vectors in one layer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "builtin"))

from elmokit import Elmo
from elmokit.figures import Point, PointGroup, draw_scatter_plot
from elmokit.probe import embed_word
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.probe.plane import project_to_plane
from elmokit.storage import write_text
from separation import read_senses

LABELED = {
    "The canoe drifted sideways until it struck the muddy bank.",
    "Otters had dug a den in the bank below the roots of an alder.",
    "The army camped on the west bank of the river and waited for boats.",
    "Cattle came down to the bank every evening to drink.",
    "She opened an account at the bank and deposited her first wages.",
    "The bank refused to lend the company any more money.",
    "An investment bank advised both companies on the merger.",
    "The central bank raised interest rates for the third time this year.",
}
"""Sentences that are written beside their dots; the others appear under the mouse."""


def senses_figure(elmo: Elmo, word: str, uses: list[tuple[str, str]], layer: int) -> str:
    """Return the figure as SVG.

    Args:
        elmo: The model.
        word: The word whose uses are drawn.
        uses: Pairs of a sense and a sentence with the word.
        layer: Number of the layer whose vectors are drawn.
    """
    import numpy as np

    vectors = [embed_word(elmo, word, sentence, layer).vector for _, sentence in uses]
    points = project_to_plane(unit_length(np.array(vectors)))
    groups: dict[str, list[Point]] = {}
    for (sense, sentence), (x, y) in zip(uses, points, strict=True):
        labeled = sentence in LABELED
        label = sentence if labeled else ""
        groups.setdefault(sense, []).append(Point(x, y, sentence, label, large=labeled))
    return draw_scatter_plot(
        f"{len(uses)} uses of “{word}”, placed by their vectors",
        [PointGroup(f"{word} ({sense})", points) for sense, points in groups.items()],
        note=f"Layer {layer} of {elmo.layers - 1}; the two directions in which the vectors differ "
        "most. Without context (layer 0) all dots are one.",
    )


def main() -> None:
    """Read the sentences and write the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="File of senses and sentences.")
    parser.add_argument("--word", required=True, help="The word.")
    parser.add_argument("--model", default="builtin", help="Path or name of the model.")
    parser.add_argument("--layer", type=int, default=2, help="Number of the layer.")
    parser.add_argument("--out", type=Path, required=True, help="SVG file to write.")
    options = parser.parse_args()
    elmo = Elmo.load(options.model)
    svg = senses_figure(elmo, options.word, read_senses(options.file), options.layer)
    write_text(options.out, svg)


if __name__ == "__main__":
    main()
