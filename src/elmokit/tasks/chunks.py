"""Tags of words to spans and back: IOB1, IOB2 and BIOES, read as conlleval reads them.

A tag is `O` or a prefix and a type, `B-PER`. One rule reads all three schemes, and whatever a model
makes of them: neighboring words belong to one span if both are inside, of the same type, the first
does not end a span (E, S) and the second does not begin one (B, S). So a span may begin with I
(IOB1, or a mistake in IOB2), and nothing inside is ever lost. conlleval and seqeval do the same.

Knows nothing about words, models or files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Scheme = Literal["IOB1", "IOB2", "BIOES"]

OUTSIDE = "O"
_TAG = re.compile(r"O|[BIES]-\S+")


class Span(NamedTuple):
    """Words `start` to `end` (exclusive), and what they are."""

    start: int
    end: int
    type: str


def is_tag(tag: str) -> bool:
    """Whether this can be a tag of one of the schemes."""
    return _TAG.fullmatch(tag) is not None


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that tags of any scheme mean, in order.

    >>> spans(["I-PER", "I-PER", "O", "S-LOC"])
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC')]
    """
    found: list[Span] = []
    start, before, kind = 0, OUTSIDE, ""
    for place, tag in enumerate((*tags, OUTSIDE)):
        prefix, _, type_ = tag.partition("-")
        cut = prefix in "BSO" or before in "ESO" or type_ != kind
        if cut:
            if before != OUTSIDE:
                found.append(Span(start, place, kind))
            start = place
        before, kind = prefix, type_
    return found


def tags(spans: Iterable[Span], length: int, scheme: Scheme = "IOB2") -> tuple[str, ...]:
    """Spans that do not overlap as tags of `length` words.

    >>> tags([Span(0, 2, "PER"), Span(3, 4, "LOC")], 4, "BIOES")
    ('B-PER', 'E-PER', 'O', 'S-LOC')
    """
    made = [OUTSIDE] * length
    last: Span | None = None
    for span in sorted(spans):
        touches = last is not None and last.end == span.start and last.type == span.type
        for place in range(span.start, span.end):
            made[place] = f"I-{span.type}"
        if scheme != "IOB1" or touches:
            made[span.start] = f"B-{span.type}"
        if scheme == "BIOES":
            made[span.end - 1] = f"{'E' if span.end - span.start > 1 else 'S'}-{span.type}"
        last = span
    return tuple(made)


def alphabet(types: Iterable[str], scheme: Scheme = "IOB2") -> list[str]:
    """All tags of some types, `O` first."""
    prefixes = "BIES" if scheme == "BIOES" else "BI"
    return [OUTSIDE, *(f"{prefix}-{type_}" for type_ in types for prefix in prefixes)]


def may_follow(
    before: str | None, after: str | None, scheme: Literal["IOB2", "BIOES"] = "IOB2"
) -> bool:
    """Whether a tag may stand after another in a faultless sequence; None is the edge."""
    one, _, kind = (before or OUTSIDE).partition("-")
    two, _, type_ = (after or OUTSIDE).partition("-")
    inside = two in ("I", "E")
    if scheme == "IOB2":
        return not inside or (one != OUTSIDE and kind == type_)
    is_open = one in ("B", "I")
    return is_open == inside and (not inside or kind == type_)
