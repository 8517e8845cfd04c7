"""Sentences in which it is known what some words mean. Knows neither files nor models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Use(NamedTuple):
    """A word, or several that are one, used in a sense."""

    start: int
    """Its first word's place in the sentence."""
    end: int
    """The place behind its last word."""
    lemma: str
    """In lower case, `_` for spaces, as WordNet has it."""
    part: str
    """Its part of speech: n, v, a, r."""
    keys: tuple[str, ...]
    """WordNet's keys of its sense; of several, if people did not want to decide."""


class SenseSentence(NamedTuple):
    """A sentence and what is known of it."""

    words: list[str]
    uses: list[Use]


@dataclass(frozen=True)
class SenseText:
    """A corpus, or a set to be scored on."""

    name: str
    sentences: Sequence[SenseSentence]
    skipped: int = 0
    """Marks that say a word has a sense, but none that WordNet has."""

    def uses(self) -> Iterator[Use]:
        """All of them, one sentence after another."""
        return (use for sentence in self.sentences for use in sentence.uses)

    @property
    def words(self) -> int:
        """How many there are."""
        return sum(len(sentence.words) for sentence in self.sentences)
