"""Target words of an analysis, and random samples of their uses in a text.

A target is a name with its word forms, which are compared ignoring case. Computes no vectors.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from elmokit.bilm.weights import FloatArray
from elmokit.errors import FormatError, InputError
from elmokit.probe.corpus_files import limit_words
from elmokit.text.files import read_lines

FUNCTION_WORDS = 150
"""Most frequent words that `frequent_targets` leaves out: articles, prepositions, pronouns, …"""
MIN_LETTERS = 3
"""Letters that a word chosen by `frequent_targets` has at least."""
REFERENCE_WORDS = 10
"""Most frequent words that `reference_targets` returns, at most."""
REFERENCE_SAMPLE = 50_000
"""Words that `reference_targets` reads of each text."""
REFERENCE_TEXT = 10_000
"""Words that each text has at least: in less, the most frequent words may be any words."""


@dataclass(frozen=True)
class TargetWord:
    """A word to look for, in all of its forms."""

    name: str
    """Name of the word in tables and figures."""
    forms: tuple[str, ...]
    """Spellings that count as this word, in lower case."""
    gold: float | None = None
    """How much the word has changed according to people, if that is known."""


class UseLocation(NamedTuple):
    """Where a use is in its text."""

    document: int
    """Index of the document."""
    document_start: int
    """Index of the document's first sentence in the text."""
    sentence: int
    """Index of the sentence in the text."""


class TextSize(NamedTuple):
    """How much text was read."""

    documents: int
    """Documents with at least one sentence."""
    sentences: int
    """Sentences of all documents."""


@dataclass
class UseSample:
    """A sample of the uses of a target word in a text."""

    count: int
    """Uses in the whole text."""
    text: TextSize
    """Size of the whole text."""
    uses: list[tuple[Sequence[str], int]] = field(default_factory=list)
    """Sampled uses in text order: the words of the sentence, and the position of the target."""
    locations: list[UseLocation] = field(default_factory=list)
    """Where each of the sampled uses is."""
    repeated: int = 0
    """Uses that were drawn and dropped, because their sentence had been drawn before."""
    layers_NLD: FloatArray | None = None
    """Vectors of the uses in all layers, if a sharded job has stored them."""


def parse_target(text: str) -> TargetWord:
    """Return the target that a text names: `play`, or with other forms `play=plays,played`."""
    name, _, others = text.partition("=")
    return make_target([name, *others.split(",")])


def make_target(forms: Iterable[str], gold: float | None = None) -> TargetWord:
    """Return the target with these forms, the first of which is its name."""
    stripped = [form.strip() for form in forms if form.strip()]
    if not stripped:
        raise InputError("a word is empty; expected for example play, or play=plays,played")
    folded = tuple(dict.fromkeys(form.casefold() for form in stripped))
    return TargetWord(stripped[0], folded, gold)


def read_targets(path: str | Path) -> list[TargetWord]:
    """Read a file with one target per line, optionally with a tab and a gold score after it."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise InputError(f"there is no file {path}; expected a file with one word per line")
    targets = []
    for place, line in read_lines(file):
        if not line.strip():
            continue
        word, *columns = line.strip().split("\t")
        try:
            gold = float(columns[0]) if columns else None
            if len(columns) > 1 or not math.isfinite(gold or 0):
                raise ValueError
        except ValueError:
            raise FormatError(
                f"{place}: found {line[:60]!r}; expected a word, or a word, a tab and a number"
            ) from None
        targets.append(replace(parse_target(word), gold=gold))
    if not targets:
        raise FormatError(f"{path} has no words; expected one word per line")
    scored = sum(target.gold is not None for target in targets)
    if scored not in (0, len(targets)):
        raise FormatError(
            f"{path}: {scored} of {len(targets)} words have a number; expected all or none"
        )
    return targets


def check_targets(targets: Sequence[TargetWord]) -> None:
    """Raise an error if a form belongs to two targets."""
    owner: dict[str, str] = {}
    for target in targets:
        for form in target.forms:
            if form in owner:
                raise InputError(
                    f"{form!r} belongs to {owner[form]!r} and to {target.name!r}; give it once"
                )
            owner[form] = target.name


def frequent_targets(
    then: Iterable[Sequence[str]], now: Iterable[Sequence[str]], number: int, min_uses: int
) -> list[TargetWord]:
    """Return the most frequent words that two texts share, without function words.

    Args:
        then: Sentences of the first text, as words.
        now: Sentences of the second text, as words.
        number: How many words to return.
        min_uses: Uses that a word has at least in each of the texts.
    """
    counts = [_count_folded(text) for text in (then, now)]
    total = counts[0] + counts[1]
    # By count, then by name, so that the order of the texts does not matter.
    ranked = sorted(total, key=lambda form: (-total[form], form))
    targets = [
        make_target([form])
        for form in ranked[FUNCTION_WORDS:]
        if form.isalpha()
        and len(form) >= MIN_LETTERS
        and min(count[form] for count in counts) >= min_uses
    ]
    return targets[:number]


def reference_targets(
    then: Iterable[Sequence[str]], now: Iterable[Sequence[str]], min_uses: int
) -> list[TargetWord]:
    """Return the most frequent words of two texts, such as "the", whose meaning does not change.

    How far apart they are is how much the texts differ as wholes. Texts that are too small have
    none.

    Args:
        then: Sentences of the first text, as words.
        now: Sentences of the second text, as words.
        min_uses: Uses that a word has at least in each of the texts.
    """
    counts = [_count_folded(limit_words(text, REFERENCE_SAMPLE)) for text in (then, now)]
    sizes = [count.total() for count in counts]
    if min(sizes) < REFERENCE_TEXT:
        return []
    words = {
        word: sum(count[word] / size for count, size in zip(counts, sizes, strict=True))
        for word in counts[0]
        if word.isalpha() and min(count[word] for count in counts) >= min_uses
    }
    ranked = sorted(words, key=lambda word: (-words[word], word))
    return [make_target([word]) for word in ranked[:REFERENCE_WORDS]]


def _count_folded(text: Iterable[Sequence[str]]) -> Counter[str]:
    """Count the words of a text, ignoring case."""
    spellings: Counter[str] = Counter()
    for words in text:
        spellings.update(words)
    folded: Counter[str] = Counter()
    for word, count in spellings.items():
        folded[word.casefold()] += count
    return folded


def sample_uses(
    sentences: Iterable[Sequence[str]], targets: Sequence[TargetWord], max_uses: int, seed: str
) -> list[UseSample]:
    """Return a random sample of the uses of each target; the same seed gives the same sample.

    Args:
        sentences: Sentences of a text, as words; an empty one ends a document.
        targets: Words to look for.
        max_uses: Uses of each target in its sample, at most; all uses are equally likely.
        seed: Random seed.
    """
    number_of = {form: k for k, target in enumerate(targets) for form in target.forms}
    randoms = [random.Random(f"{seed} {target.name}") for target in targets]
    drawn: list[dict[int, tuple[UseLocation, Sequence[str], int]]] = [{} for _ in targets]
    counts = [0] * len(targets)
    known: dict[str, int] = {}
    documents = number = document_start = 0
    for words in sentences:
        if not words:
            documents += number > document_start
            document_start = number
        location = UseLocation(documents, document_start, number)
        number += bool(words)
        for position, word in enumerate(words):
            if (k := known.get(word)) is None:
                k = known[word] = number_of.get(word.casefold(), -1)
            if k < 0:
                continue
            # Reservoir sampling: use n replaces a drawn one with the probability max_uses / n.
            slot = counts[k] if counts[k] < max_uses else randoms[k].randrange(counts[k] + 1)
            counts[k] += 1
            if slot < max_uses:
                drawn[k][slot] = (location, words, position)
    text = TextSize(documents + (number > document_start), number)
    samples = []
    for count, slots in zip(counts, drawn, strict=True):
        sample = UseSample(count, text)
        seen = set()
        for location, words, position in sorted(slots.values(), key=lambda use: (use[0], use[2])):
            if (key := (tuple(words), position)) in seen:
                sample.repeated += 1
            else:
                seen.add(key)
                sample.uses.append((words, position))
                sample.locations.append(location)
        samples.append(sample)
    return samples
