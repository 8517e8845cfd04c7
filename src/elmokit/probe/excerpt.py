"""A word in its sentence, shortened to fit on one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

SIDE = 28
"""Maximum number of characters on each side of the word; the three parts fit into 80 columns."""
_ATTACHED = re.compile(r"[.,;:!?%)\]’]|n't\b|'\w{1,2}\b")
"""Beginning of a word that is written without a space before it."""


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


def running_text(words: Sequence[str]) -> str:
    """Return words as running text, without the spaces before punctuation."""
    return "".join(
        word if i == 0 or _ATTACHED.match(word) else f" {word}" for i, word in enumerate(words)
    )


def snippet(
    words: Sequence[str],
    position: int,
    width: int,
    measure: Callable[[str], int] = len,
    mark: str = "",
) -> str:
    """Return a word with as many whole words around it as fit, as running text.

    Args:
        words: The sentence.
        position: Index of the word in the sentence.
        width: Maximum width; a word that is wider itself is returned whole.
        measure: Width of a text, in the same unit; by default its number of characters.
        mark: Text before and after the word, such as `"*"`.
    """
    start, end = position, position + 1

    def text(start: int, end: int) -> str:
        shown = [*words[start:position], mark + words[position] + mark, *words[position + 1 : end]]
        return ("… " if start else "") + running_text(shown) + (" …" if end < len(words) else "")

    left = right = True
    while left or right:
        # The side with fewer words grows first, so that the word stays in the middle.
        left = left and start > 0 and measure(text(start - 1, end)) <= width
        if left:
            start -= 1
        right = right and end < len(words) and measure(text(start, end + 1)) <= width
        if right:
            end += 1
    return text(start, end)
