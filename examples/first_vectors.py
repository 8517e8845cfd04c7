"""First vectors: one word, four sentences.

The word "left" is one vector while the model knows only its letters (layer 0), and becomes two
kinds of vectors when it has read the sentences (layer 2). Needs nothing but elmokit:

    python examples/first_vectors.py
"""

from __future__ import annotations

import numpy as np

from elmokit import Elmo

SENTENCES = [
    "He left the house .",
    "She left her umbrella .",
    "He raised his left hand .",
    "Turn to the left side .",
]

elmo = Elmo.load()
for layer in (0, 2):
    uses = []
    for sentence in SENTENCES:
        vectors = elmo.embed(sentence, layers=layer)  # one vector per word
        uses.append(vectors[sentence.split().index("left")])
    unit = np.array([use / np.linalg.norm(use) for use in uses])
    print(f"layer {layer}: cosines between the four uses of 'left'")
    for sentence, row in zip(SENTENCES, unit @ unit.T, strict=True):
        print("  " + "  ".join(f"{cosine:5.2f}" for cosine in row), "", sentence)
