"""Sentences as old code gives them: lists of words, or strings, which are lists of characters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence


def as_word_lists(
    sentences: Iterable[Sequence[str]], argument: str, callers: int = 1
) -> list[Sequence[str]]:
    """Return lists of words; a string becomes the list of its characters, with a warning.

    The originals do the same without a word, which is seldom what was meant.

    Args:
        sentences: Sentences, each a list of words.
        argument: Name of the argument, for the warning.
        callers: Number of functions of elmokit between the user's code and this one.
    """
    whole = isinstance(sentences, str)
    given = list(sentences)
    if whole or any(isinstance(words, str) for words in given):
        found = "is a string" if whole else "contains strings"
        warnings.warn(
            f"{argument} {found}, whose characters are read as words; expected a list of lists "
            "of words, such as [text.split()]",
            stacklevel=callers + 2,
        )
    return [list(words) if isinstance(words, str) else words for words in given]
