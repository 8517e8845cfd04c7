"""Words to look for in texts, and a fair sample of their uses.

A target is a name with its forms, which are compared whatever their case. Knows nothing about
vectors.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elmokit.errors import FormatError, InputError

GRAMMAR = 150
"""So many of the most frequent words are left out where a text's words are chosen for their
meaning: they are articles, prepositions, pronouns, …"""
SHORTEST = 3


@dataclass(frozen=True)
class Target:
    """A word, in all of its forms."""

    name: str
    forms: tuple[str, ...]
    gold: float | None = None
    """What people say, if they were asked."""


@dataclass
class Sample:
    """Uses of a target in a text."""

    count: int = 0
    """How many there are."""
    uses: list[tuple[Sequence[str], int]] = field(default_factory=list)
    """Some of them, in the order of the text: the sentence, and which of its words."""
    repeated: int = 0
    """Uses that were drawn and dropped, since their sentence had been drawn before."""


def parse_target(text: str) -> Target:
    """`play`, or with other forms that count as the same word: `play=plays,played`."""
    name, _, others = text.partition("=")
    return make_target([name, *others.split(",")])


def make_target(forms: Iterable[str], gold: float | None = None) -> Target:
    """The first form is the name."""
    given = [form.strip() for form in forms if form.strip()]
    if not given:
        raise InputError("a word is empty; expected e.g. play, or play=plays,played")
    return Target(given[0], tuple(dict.fromkeys(form.casefold() for form in given)), gold)


def read_targets(path: str | Path) -> list[Target]:
    """One word a line, optionally a tab and a number behind it: how much it changed, by people."""
    place = Path(path).expanduser()
    try:
        lines = place.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{path} is not UTF-8; convert it first") from None
    targets = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        word, *columns = line.strip().split("\t")
        try:
            gold = float(columns[0]) if columns else None
            if len(columns) > 1:
                raise ValueError
        except ValueError:
            raise FormatError(
                f"{path}:{number}: found {line[:60]!r}; expected a word, or a word, a tab and a "
                "number"
            ) from None
        target = parse_target(word)
        targets.append(Target(target.name, target.forms, gold))
    if not targets:
        raise FormatError(f"{path} has no words; expected one a line")
    golden = sum(target.gold is not None for target in targets)
    if golden not in (0, len(targets)):
        raise FormatError(f"{path}: {golden} of {len(targets)} words have a number; all or none")
    return targets


def check_targets(targets: Sequence[Target]) -> None:
    """No form may belong to two of them."""
    owner: dict[str, str] = {}
    for target in targets:
        for form in target.forms:
            if form in owner:
                raise InputError(
                    f"{form!r} belongs to {owner[form]!r} and to {target.name!r}; give it once"
                )
            owner[form] = target.name


def frequent_targets(
    then: Iterable[Sequence[str]], now: Iterable[Sequence[str]], number: int, least: int
) -> list[Target]:
    """The most frequent words that both texts have, without those that are rather grammar."""
    counts = [_counted(text) for text in (then, now)]
    together = counts[0] + counts[1]
    # By count, then by name, so that the order of the texts does not matter.
    ranked = sorted(together, key=lambda form: (-together[form], form))
    found = [
        make_target([form])
        for form in ranked[GRAMMAR:]
        if form.isalpha() and len(form) >= SHORTEST and min(c[form] for c in counts) >= least
    ]
    return found[:number]


def _counted(text: Iterable[Sequence[str]]) -> Counter[str]:
    written: Counter[str] = Counter()
    for words in text:
        written.update(words)
    folded: Counter[str] = Counter()
    for word, count in written.items():
        folded[word.casefold()] += count
    return folded


def sample_uses(
    sentences: Iterable[Sequence[str]], targets: Sequence[Target], most: int, seed: str
) -> list[Sample]:
    """At most so many uses of each target, all equally likely; the same ones for the same seed."""
    wanted = {form: k for k, target in enumerate(targets) for form in target.forms}
    dice = [random.Random(f"{seed} {target.name}") for target in targets]
    drawn: list[dict[int, tuple[int, Sequence[str], int]]] = [{} for _ in targets]
    counts = [0] * len(targets)
    known: dict[str, int] = {}
    for number, words in enumerate(sentences):
        for place, word in enumerate(words):
            if (k := known.get(word)) is None:
                k = known[word] = wanted.get(word.casefold(), -1)
            if k < 0:
                continue
            # A reservoir: use n replaces one of those drawn with the chance most / n.
            slot = counts[k] if counts[k] < most else dice[k].randrange(counts[k] + 1)
            counts[k] += 1
            if slot < most:
                drawn[k][slot] = (number, words, place)
    samples = []
    for count, slots in zip(counts, drawn, strict=True):
        sample = Sample(count)
        seen = set()
        for _, words, place in sorted(slots.values(), key=lambda use: (use[0], use[2])):
            if (key := (tuple(words), place)) in seen:
                sample.repeated += 1
            else:
                seen.add(key)
                sample.uses.append((words, place))
        samples.append(sample)
    return samples
