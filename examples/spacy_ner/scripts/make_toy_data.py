"""Write a tiny made-up data set of people and towns in CoNLL's format.

    python scripts/make_toy_data.py assets

The names in dev.conll do not occur in train.conll: a model can know them only from their
characters and their context.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

PEOPLE = {
    "train": "Ada Alan Grace Edsger Katherine John Mary Peter Anna Michael".split(),
    "dev": "Barbara Donald Margaret Tim Radia Linus".split(),
}
TOWNS = {
    "train": "London Paris Oslo Rome Vienna Lisbon Dublin Prague Athens Warsaw".split(),
    "dev": "Berlin Madrid Helsinki Brussels Budapest Zagreb".split(),
}
SENTENCES = [
    "{person} went to {town} yesterday .",
    "In {town} , {person} bought a new coat .",
    "The train from {town} was late , said {person} .",
    "{person} and {person} live near {town} .",
    "He asked {person} about the weather in {town} .",
    "It was a quiet day .",
]


def make_sentence(rng: random.Random, part: str) -> str:
    """Return one sentence, a word and its tag per line."""
    lines = []
    for word in rng.choice(SENTENCES).split():
        if word == "{person}":
            lines.append(f"{rng.choice(PEOPLE[part])} -X- O B-PER")
        elif word == "{town}":
            lines.append(f"{rng.choice(TOWNS[part])} -X- O B-LOC")
        else:
            lines.append(f"{word} -X- O O")
    return "\n".join(lines) + "\n\n"


def main() -> None:
    """Write train.conll and dev.conll."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="Directory to write to.")
    directory = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    for part, count in (("train", 200), ("dev", 60)):
        text = "".join(make_sentence(rng, part) for _ in range(count))
        (directory / f"{part}.conll").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
