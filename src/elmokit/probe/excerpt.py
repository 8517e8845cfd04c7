"""A word in its sentence, shortened to fit on one line."""

from __future__ import annotations

from collections.abc import Sequence

SIDE = 28
"""Maximum number of characters on each side of the word; the three parts fit into 80 columns."""


def excerpt(words: Sequence[str], place: int, side: int = SIDE) -> tuple[str, str, str]:
    """Return the text before a word, the word, and the text after it.

    Args:
        words: The sentence.
        place: Index of the word in the sentence.
        side: Maximum number of characters before and after the word.
    """
    before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
    if len(before) > side:
        before = "…" + before[-side + 1 :]
    if len(after) > side:
        after = after[: side - 1] + "…"
    return before, words[place], after


def excerpt_line(words: Sequence[str], place: int, side: int = SIDE) -> str:
    """Return the excerpt as one string, with the word between asterisks."""
    before, word, after = excerpt(words, place, side)
    return f"{before} *{word}* {after}".strip()
