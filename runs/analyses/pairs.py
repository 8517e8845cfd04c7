"""Pairs of uses of one word, in the same sense or not, out of SemCor, as WiC's files have them.

    python runs/analyses/pairs.py SEMCOR_DIR --out pairs.txt --gold gold.txt [--pairs 2000]

Half of the pairs are of one sense, half of two; both uses of a pair are written alike, so that only
context can tell them apart. A form gives at most four pairs, a sentence is used once. WordNet's
senses are finer than WiC's, which left out those that are hard to tell apart: the numbers are lower
here. WiC itself would be better and is not among our data.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from pathlib import Path

from elmokit.errors import ElmoError
from elmokit.probe.senses.semcor import read_semcor
from elmokit.probe.senses.uses import SenseText
from elmokit.text.files import write_text

OF_A_FORM = 4
SHORTEST, LONGEST = 6, 60
"""Words of a sentence."""

Pair = tuple[str, str, int, int, list[str], list[str], bool]
"""Lemma, part of speech, the two places, the two sentences, whether the sense is one."""


def pairs(text: SenseText, number: int, seed: int = 0) -> list[Pair]:
    """Some, in an order that the seed tells."""
    by_form = defaultdict(list)
    for s, sentence in enumerate(text.sentences):
        if SHORTEST <= len(sentence.words) <= LONGEST:
            for use in sentence.uses:
                if use.end == use.start + 1 and len(use.keys) == 1 and use.part in "nv":
                    form = sentence.words[use.start]
                    by_form[use.lemma, use.part, form].append((s, use.start, use.keys[0]))
    draw = random.Random(seed)
    found: dict[bool, list[Pair]] = {True: [], False: []}
    used: set[int] = set()
    forms = sorted(by_form)
    draw.shuffle(forms)
    for lemma, part, form in forms:
        uses = by_form[lemma, part, form]
        draw.shuffle(uses)
        taken = 0
        for i in range(0, len(uses) - 1, 2):
            (s, at, key), (t, there, other) = uses[i : i + 2]
            same = key == other
            full = len(found[same]) >= number // 2
            if s == t or {s, t} & used or full or taken >= OF_A_FORM:
                continue
            used |= {s, t}
            taken += 1
            first, second = text.sentences[s].words, text.sentences[t].words
            found[same].append((lemma, part.upper(), at, there, first, second, same))
    chosen = found[True] + found[False]
    draw.shuffle(chosen)
    return chosen


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("semcor", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=2000)
    given = parser.parse_args()
    try:
        found = pairs(read_semcor(given.semcor), given.pairs)
    except ElmoError as error:
        sys.exit(f"pairs: {error}")
    lines = [
        f"{lemma}\t{part}\t{at}-{there}\t{' '.join(first)}\t{' '.join(second)}\n"
        for lemma, part, at, there, first, second, _ in found
    ]
    write_text(given.gold, "".join(f"{'T' if same else 'F'}\n" for *_, same in found))
    write_text(given.out, "".join(lines))
    print(f"{len(found):,} pairs")


if __name__ == "__main__":
    main()
