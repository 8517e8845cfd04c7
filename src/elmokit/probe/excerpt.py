"""A word in its sentence, cut to what a line can show."""

from __future__ import annotations

from collections.abc import Sequence

SIDE = 28
"""Letters on each side of the word: the three parts fit into a terminal of 80."""


def excerpt(words: Sequence[str], place: int, side: int = SIDE) -> tuple[str, str, str]:
    """What stands before the word, the word, and what stands behind it."""
    before, behind = " ".join(words[:place]), " ".join(words[place + 1 :])
    if len(before) > side:
        before = "…" + before[-side + 1 :]
    if len(behind) > side:
        behind = behind[: side - 1] + "…"
    return before, words[place], behind


def line(words: Sequence[str], place: int, side: int = SIDE) -> str:
    """The same in one string, the word between stars."""
    before, word, behind = excerpt(words, place, side)
    return f"{before} *{word}* {behind}".strip()
