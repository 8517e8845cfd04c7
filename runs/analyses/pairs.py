"""Extract pairs of uses of one word, in the same sense or not, from SemCor, in WiC's format.

    python runs/analyses/pairs.py SEMCOR_DIR --out pairs.txt --gold gold.txt [--pairs 2000]

Half of the pairs have the same sense, half have different senses. Both uses of a pair are spelled
alike, so that only their context can tell them apart. A spelling gives at most four pairs, and a
sentence is used once. WordNet's senses are finer than those of WiC, which left out senses that are
hard to tell apart, so the scores are lower here. WiC itself would be better, but is not among our
data.

Of the pairs with one sense 30 % come from one document, of the others 1 %, so that what a sentence
is about gives some of them away. With `--two-documents` no pair comes from one document.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elmokit.errors import ElmoError
from elmokit.probe.senses.corpus import SenseCorpus
from elmokit.probe.senses.semcor import read_semcor, semcor_files
from elmokit.storage import write_text

PAIRS_PER_FORM = 4
"""Pairs of one spelling of a word, at most."""
MIN_LENGTH, MAX_LENGTH = 6, 60
"""Words of a sentence."""


class Pair(NamedTuple):
    """Two uses of a word in two sentences."""

    lemma: str
    part: str
    """Part of speech: N or V."""
    first_position: int
    second_position: int
    first_words: list[str]
    second_words: list[str]
    same_sense: bool


def extract_pairs(
    text: SenseCorpus, number: int, seed: int = 0, documents: Sequence[int] | None = None
) -> list[Pair]:
    """Return random pairs of uses; the same seed gives the same pairs in the same order.

    Args:
        text: The annotated sentences.
        number: Maximum number of pairs.
        seed: Random seed.
        documents: The document of each sentence, if the two uses of a pair must be of different
            documents.
    """
    by_form = defaultdict(list)
    for s, sentence in enumerate(text.sentences):
        if MIN_LENGTH <= len(sentence.words) <= MAX_LENGTH:
            for use in sentence.uses:
                if use.end == use.start + 1 and len(use.keys) == 1 and use.part in "nv":
                    form = sentence.words[use.start]
                    by_form[use.lemma, use.part, form].append((s, use.start, use.keys[0]))
    rng = random.Random(seed)
    pairs: dict[bool, list[Pair]] = {True: [], False: []}
    used: set[int] = set()
    forms = sorted(by_form)
    rng.shuffle(forms)
    for lemma, part, form in forms:
        uses = by_form[lemma, part, form]
        rng.shuffle(uses)
        taken = 0
        for i in range(0, len(uses) - 1, 2):
            (s, first_position, first_key), (t, second_position, second_key) = uses[i : i + 2]
            same = first_key == second_key
            full = len(pairs[same]) >= number // 2
            together = s == t or (documents is not None and documents[s] == documents[t])
            if together or {s, t} & used or full or taken >= PAIRS_PER_FORM:
                continue
            used |= {s, t}
            taken += 1
            first, second = text.sentences[s].words, text.sentences[t].words
            pairs[same].append(
                Pair(lemma, part.upper(), first_position, second_position, first, second, same)
            )
    chosen = pairs[True] + pairs[False]
    rng.shuffle(chosen)
    return chosen


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("semcor", type=Path, help="Directory of SemCor 3.0.")
    parser.add_argument("--out", type=Path, required=True, help="File for the pairs.")
    parser.add_argument("--gold", type=Path, required=True, help="File for the answers, T or F.")
    parser.add_argument(
        "--pairs", type=int, default=2000, help="Maximum number of pairs (default: 2000)."
    )
    parser.add_argument(
        "--two-documents", action="store_true", help="Take both uses from different documents."
    )
    options = parser.parse_args()
    try:
        files = [read_semcor([path]) for path in semcor_files(options.semcor)]
        text = SenseCorpus("SemCor", [each for file in files for each in file.sentences])
        documents = [number for number, file in enumerate(files) for _ in file.sentences]
        apart = documents if options.two_documents else None
        pairs = extract_pairs(text, options.pairs, documents=apart)
    except ElmoError as error:
        sys.exit(f"pairs: {error}")
    lines = [
        f"{pair.lemma}\t{pair.part}\t{pair.first_position}-{pair.second_position}\t"
        f"{' '.join(pair.first_words)}\t{' '.join(pair.second_words)}\n"
        for pair in pairs
    ]
    write_text(options.gold, "".join(f"{'T' if pair.same_sense else 'F'}\n" for pair in pairs))
    write_text(options.out, "".join(lines))
    document_of = {
        " ".join(each.words): number for each, number in zip(text.sentences, documents, strict=True)
    }
    print(f"{len(pairs):,} pairs")
    for same, name in ((True, "with one sense"), (False, "with two senses")):
        chosen = [pair for pair in pairs if pair.same_sense == same]
        together = sum(
            document_of[" ".join(pair.first_words)] == document_of[" ".join(pair.second_words)]
            for pair in chosen
        )
        print(f"{together:,} of {len(chosen):,} {name} are from one document")


if __name__ == "__main__":
    main()
