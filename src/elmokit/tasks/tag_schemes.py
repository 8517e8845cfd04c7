"""Tags of words to spans and back: IOB1, IOB2 and BIOES, read as conlleval reads them.

A tag is `O` or a prefix and a type, such as `B-PER`. One rule reads all three schemes, and whatever
a model predicts in them: neighboring words belong to one span if both are inside, of the same type,
the first does not end a span (E, S) and the second does not begin one (B, S). So a span may begin
with I (in IOB1, or as a mistake in IOB2), and no inside tag is ever lost. conlleval and seqeval do
the same.

Knows nothing about words, models or files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

TagScheme = Literal["IOB1", "IOB2", "BIOES"]

OUTSIDE = "O"
"""The tag of a word in no span."""
_TAG = re.compile(r"O|[BIES]-\S+")


class TaggedSpan(NamedTuple):
    """Consecutive words of a sentence and their type."""

    start: int
    """Index of the first word."""
    end: int
    """Index after the last word."""
    type: str
    """What the words are, such as `PER`."""


def is_tag(tag: str) -> bool:
    """Return whether this is a tag of one of the schemes."""
    return _TAG.fullmatch(tag) is not None


def tags_to_spans(tags: Sequence[str]) -> list[TaggedSpan]:
    """Return the spans that tags of any scheme mean, in order.

    >>> tags_to_spans(["I-PER", "I-PER", "O", "S-LOC"])
    [TaggedSpan(start=0, end=2, type='PER'), TaggedSpan(start=3, end=4, type='LOC')]
    """
    spans: list[TaggedSpan] = []
    start, previous_prefix, previous_type = 0, OUTSIDE, ""
    for position, tag in enumerate((*tags, OUTSIDE)):
        prefix, _, type_ = tag.partition("-")
        if prefix in "BSO" or previous_prefix in "ESO" or type_ != previous_type:
            if previous_prefix != OUTSIDE:
                spans.append(TaggedSpan(start, position, previous_type))
            start = position
        previous_prefix, previous_type = prefix, type_
    return spans


def spans_to_tags(
    spans: Iterable[TaggedSpan], length: int, scheme: TagScheme = "IOB2"
) -> tuple[str, ...]:
    """Return the tags of `length` words for spans that do not overlap.

    >>> spans_to_tags([TaggedSpan(0, 2, "PER"), TaggedSpan(3, 4, "LOC")], 4, "BIOES")
    ('B-PER', 'E-PER', 'O', 'S-LOC')
    """
    tags = [OUTSIDE] * length
    last: TaggedSpan | None = None
    for span in sorted(spans):
        touches = last is not None and last.end == span.start and last.type == span.type
        for position in range(span.start, span.end):
            tags[position] = f"I-{span.type}"
        if scheme != "IOB1" or touches:
            tags[span.start] = f"B-{span.type}"
        if scheme == "BIOES":
            tags[span.end - 1] = f"{'E' if span.end - span.start > 1 else 'S'}-{span.type}"
        last = span
    return tuple(tags)


def all_tags(types: Iterable[str], scheme: TagScheme = "IOB2") -> list[str]:
    """Return all tags of a scheme for these types, `O` first."""
    prefixes = "BIES" if scheme == "BIOES" else "BI"
    return [OUTSIDE, *(f"{prefix}-{type_}" for type_ in types for prefix in prefixes)]


def may_follow(
    before: str | None, after: str | None, scheme: Literal["IOB2", "BIOES"] = "IOB2"
) -> bool:
    """Return whether a well-formed sequence may have one tag after another.

    Args:
        before: The first tag; None for the beginning of the sentence.
        after: The second tag; None for the end of the sentence.
        scheme: The scheme that the sequence must follow.
    """
    before_prefix, _, before_type = (before or OUTSIDE).partition("-")
    after_prefix, _, after_type = (after or OUTSIDE).partition("-")
    continues = after_prefix in ("I", "E")
    if scheme == "IOB2":
        return not continues or (before_prefix != OUTSIDE and before_type == after_type)
    is_open = before_prefix in ("B", "I")
    return is_open == continues and (not continues or before_type == after_type)
