"""Sentences with words annotated with WordNet senses. Knows neither files nor models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class SenseUse(NamedTuple):
    """A word or a multiword expression in a sentence, annotated with its sense."""

    start: int
    """Index of its first word in the sentence."""
    end: int
    """Index after its last word."""
    lemma: str
    """Lemma as in WordNet: lower case, `_` for spaces."""
    part: str
    """Part of speech: n, v, a or r."""
    keys: tuple[str, ...]
    """WordNet keys of the sense; several if the annotators accepted several."""


class SenseSentence(NamedTuple):
    """A sentence and its annotated words."""

    words: list[str]
    uses: list[SenseUse]


@dataclass(frozen=True)
class SenseCorpus:
    """A corpus of annotated sentences, for building sense vectors or for evaluation."""

    name: str
    sentences: Sequence[SenseSentence]
    skipped: int = 0
    """Number of annotations whose sense is not in WordNet any more."""

    def uses(self) -> Iterator[SenseUse]:
        """Yield the annotated words of all sentences."""
        return (use for sentence in self.sentences for use in sentence.uses)

    @property
    def words(self) -> int:
        """Number of words in all sentences."""
        return sum(len(sentence.words) for sentence in self.sentences)
