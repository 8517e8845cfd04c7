"""Where predictions are in a raw text, in characters, and how sure the model is of them.

Every task's records have the same keys for them: `start_char`, `end_char` and `confidence`.
"""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.text.tokenize import Token

CharacterSpans = tuple[tuple[int, int], ...]
"""Start and end of each word of a sentence in a raw text: `text[start:end]` is the word."""


def token_words(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the words of tokens."""
    return tuple(token.text for token in tokens)


def token_spans(tokens: Sequence[Token], offset: int = 0) -> CharacterSpans:
    """Return where tokens are in a text in which their sentence begins at `offset`."""
    return tuple((token.start + offset, token.end + offset) for token in tokens)


def character_fields(spans: CharacterSpans | None, start: int, end: int) -> dict[str, int]:
    """Return `start_char` and `end_char` of some words for a record; nothing if they are unknown.

    Args:
        spans: Where all words of the sentence are.
        start: Index of the first of the words.
        end: Index after the last of the words.
    """
    if not spans:
        return {}
    return {"start_char": spans[start][0], "end_char": spans[end - 1][1]}


def confidence_field(confidence: float | None) -> dict[str, float]:
    """Return `confidence`, a probability, for a record; nothing if it is unknown."""
    return {} if confidence is None else {"confidence": round(confidence, 6)}
