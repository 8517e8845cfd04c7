"""Words that no dictionary has: typing errors, inventions, long compounds.

ELMo reads a word by its characters, so there is no unknown word. A misspelled word gets a vector
near to the right one, and the sentence around it brings it nearer still. Needs nothing but
elmokit:

    python examples/unknown_words.py
"""

from __future__ import annotations

import numpy as np

from elmokit import Elmo

PAIRS = [
    ("The government announced a new policy .", "government", "goverment"),
    ("He is definitely coming tomorrow .", "definitely", "definately"),
    ("They were walking through the forest .", "walking", "wallking"),
    ("She is a famous scientist .", "scientist", "sceintist"),
]


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    """Return the cosine between two vectors."""
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


elmo = Elmo.load()
print("right, wrong                 letters alone   in the sentence   another word there")
for sentence, right, wrong in PAIRS:
    words = sentence.split()
    place = words.index(right)
    variants = [[*words[:place], word, *words[place + 1 :]] for word in (right, wrong, "banana")]
    layers = elmo.embed(variants, layers="all")  # three arrays (3, T, 384)
    spelled, misspelled, other = (array[:, place] for array in layers)
    print(
        f"{right + ', ' + wrong:26}"
        f"{cosine(spelled[0], misspelled[0]):12.2f}"
        f"{cosine(spelled[2], misspelled[2]):18.2f}"
        f"{cosine(spelled[2], other[2]):18.2f}"
    )
