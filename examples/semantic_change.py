"""Semantic change: which words are used differently in two texts?

The two texts are made here: in the older one a mouse is an animal, a stream has water and a cell
has walls; in the newer one they have moved to the computer, while "letter", "garden" and "bread"
stay what they were. `elmo change old.txt new.txt` does the same with your files. Needs nothing
but elmokit:

    python examples/semantic_change.py
"""

from __future__ import annotations

import random

from elmokit import Elmo
from elmokit.probe import render_tables, semantic_change

OLD = {
    "mouse": [
        "{who} saw a {how} mouse run across the {place} .",
        "The {how} cat of {who} caught a mouse in the {place} .",
        "A {how} mouse was eating cheese in the {place} .",
    ],
    "stream": [
        "{who} caught two fish in the {how} stream behind the {place} .",
        "The {how} stream runs past the {place} into the river .",
        "Cattle drink from the {how} stream near the {place} .",
    ],
    "cell": [
        "{who} was locked into a {how} cell under the {place} .",
        "The prisoner left his {how} cell and went to the {place} .",
        "A monk lived in a {how} cell beside the {place} .",
    ],
}
NEW = {
    "mouse": [
        "{who} clicked with the {how} mouse on the picture of a {place} .",
        "Move the {how} mouse to open the map of the {place} .",
        "{who} bought a {how} mouse and a keyboard for the {place} .",
    ],
    "stream": [
        "{who} watched the {how} stream from the {place} on a phone .",
        "Your {how} stream of data to the {place} has stopped .",
        "Millions followed the {how} stream from the {place} online .",
    ],
    "cell": [
        "{who} typed a number into the {how} cell for the {place} .",
        "Copy the {how} cell into the table of the {place} .",
        "Each {how} cell of the table shows the costs of a {place} .",
    ],
}
SAME = {
    "letter": [
        "{who} wrote a {how} letter to the {place} .",
        "The {how} letter came from the {place} .",
    ],
    "garden": [
        "{who} has a {how} garden near the {place} .",
        "Roses grow in the {how} garden of the {place} .",
    ],
    "bread": [
        "{who} baked {how} bread for the {place} .",
        "They sell {how} bread at the {place} .",
    ],
}
WHO = [
    "Anna",
    "Peter",
    "The teacher",
    "My brother",
    "Nobody",
    "The old man",
    "Her friend",
    "A child",
]
HOW = ["small", "new", "old", "cold", "grey", "simple", "strange", "good"]
PLACE = ["church", "school", "house", "market", "library", "village", "hospital", "station"]


def make_text(own: dict[str, list[str]], seed: int) -> list[list[str]]:
    """Return the sentences of 24 documents; an empty list ends a document."""
    rng = random.Random(seed)
    sentences: list[list[str]] = []
    for _ in range(24):
        for templates in (own | SAME).values():
            for template in rng.choices(templates, k=3):
                slots = {"who": rng.choice(WHO), "how": rng.choice(HOW), "place": rng.choice(PLACE)}
                sentences.append(template.format(**slots).split())
        sentences.append([])
    return sentences


measurement = semantic_change(Elmo.load(), make_text(OLD, 1), make_text(NEW, 2), [*OLD, *SAME])
table = render_tables(measurement)[0]
keep = [table.columns.index(name) for name in ("word", "PRT", "chance", "q")]
for row in [table.columns, *table.rows]:
    print("".join(f"{row[column]:>10}" for column in keep))
print("PRT: distance between the means of a word's uses; q at most 0.05: it has changed.")
