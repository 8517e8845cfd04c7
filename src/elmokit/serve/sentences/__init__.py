"""The sentences that ship with the page: uses of a few words with their senses, and a small corpus.

They were written for elmokit. Each line of `english.tsv` has a word, its sense and a sentence; the
first two are empty where a sentence is only there to be found as a neighbor.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple


class SampleSentence(NamedTuple):
    """A sentence of the page's own corpus."""

    word: str
    """The word whose sense is known; empty if there is none."""
    sense: str
    """Sense of that word, such as `river`."""
    text: str
    """The sentence."""


@cache
def sample_sentences() -> tuple[SampleSentence, ...]:
    """Return all sentences, in the order of the file."""
    text = (Path(__file__).parent / "english.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(SampleSentence(*line.split("\t")) for line in lines)


def sample_uses() -> dict[str, list[SampleSentence]]:
    """Return the sentences of each word whose senses are known."""
    uses: dict[str, list[SampleSentence]] = {}
    for sentence in sample_sentences():
        if sentence.word:
            uses.setdefault(sentence.word, []).append(sentence)
    return uses
