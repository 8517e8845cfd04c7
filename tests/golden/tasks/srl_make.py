"""Make srl_eval.json: role scores computed by srl-eval.pl of the CoNLL-2005 shared task.

    python tests/golden/tasks/srl_make.py srl-eval.pl

The script is part of the wheel of allennlp-models and needs perl. The file is a list of cases:
`gold` and `found` tags (BIO) of some predicates, and what the script printed: the number of
arguments that were `right`, in `excess` and `missed`, and the percentage of predicates that were
`perfect`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

draw = random.Random(2005)
ROLES = ["A0", "A1", "C-A0", "C-A1", "C-C-A1", "R-A0", "C-R-A0", "C-V"]


def random_tags(length: int, verb: int) -> list[str]:
    """Return valid tags with the predicate at the given position."""
    tags = ["O"] * length
    position = 0
    while position < length:
        if position == verb:
            tags[position] = "B-V"
            position += 1
            continue
        end = min(position + draw.randint(1, 3), length if position > verb else verb)
        if draw.random() < 0.75:
            role = draw.choice(ROLES)
            tags[position:end] = [f"B-{role}", *[f"I-{role}"] * (end - position - 1)]
        position = end
    return tags


def changed(tags: list[str], verb: int) -> list[str]:
    """Replace the tags before, after, or around the predicate, or none of them."""
    other = random_tags(len(tags), verb)
    kind = draw.randint(0, 3)
    return [tags, other, tags[:verb] + other[verb:], other[:verb] + tags[verb:]][kind]


def brackets(tags: list[str]) -> list[str]:
    """Convert BIO tags to the bracket columns of the script."""
    cells = []
    for tag, after in zip(tags, [*tags[1:], "O"], strict=True):
        opening = f"({tag[2:]}" if tag[0] == "B" else ""
        closing = ")" if tag != "O" and after[0] != "I" else ""
        cells.append(f"{opening}*{closing}")
    return cells


def run(program: str, props: dict[str, str]) -> list[list[str]]:
    """Run the script and return the words of each line that it prints."""
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for name, text in props.items():
            paths.append(str(Path(directory, name)))
            Path(paths[-1]).write_text(text)
        done = subprocess.run(["perl", program, *paths], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def case(program: str) -> dict[str, object]:
    """Return tags of some predicates with their scores."""
    gold, found = [], []
    props = {"gold": "", "found": ""}
    for _ in range(6):
        length = draw.randint(2, 12)
        verb = draw.randrange(length)
        gold.append(random_tags(length, verb))
        found.append(changed(gold[-1], verb))
        for name, tags in (("gold", gold[-1]), ("found", found[-1])):
            for position, cell in enumerate(brackets(tags)):
                props[name] += f"{'verb' if position == verb else '-'} {cell}\n"
            props[name] += "\n"
    printed = run(program, props)
    (overall,) = (words for words in printed if words[:1] == ["Overall"])
    (perfect,) = (words for words in printed if words[:2] == ["Percentage", "of"])
    right, excess, missed = map(int, overall[1:4])
    return {
        "gold": gold,
        "found": found,
        "right": right,
        "excess": excess,
        "missed": missed,
        "perfect": float(perfect[-1]),
    }


if __name__ == "__main__":
    cases = [case(sys.argv[1]) for _ in range(20)]
    lines = ",\n".join(json.dumps(one) for one in cases)
    Path(__file__).with_name("srl_eval.json").write_text(f"[\n{lines}\n]\n")
