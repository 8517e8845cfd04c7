"""Splitting running text into sentences, with offsets: `text[span.start:span.end] == span.text`.

A full stop, question mark or similar ends a sentence unless its context says otherwise: an
abbreviation or an initial before it, a lowercase letter or a comma after it. A blank line always
ends a sentence. A single line break does not, since running text is wrapped, except before a list
item and after a line less than half as long as the longest line of its paragraph (a heading, or the
end of a paragraph: wrapping never breaks there). Raw and tokenized text are both understood.

Headings inside a line are not recognized, and ambiguous text (`in the U.S. Navy ships sailed`) is
not split. Time is linear in the length of the text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from elmokit.text.abbreviations import TITLES, is_dotted, owns_period, starts_sentence


class SentenceSpan(NamedTuple):
    """A sentence and its position in the text, in code points."""

    text: str
    start: int
    end: int


def split_sentences(text: str) -> list[SentenceSpan]:
    """Return the sentences of a text in order, each with its position in the text.

    >>> [span.text for span in split_sentences("Mr. Smith left. (He was tired.) So was I.")]
    ['Mr. Smith left.', '(He was tired.)', 'So was I.']
    """
    spans: list[SentenceSpan] = []
    for first, last in _blocks(text):
        for start, end in _cut(text, first, last):
            spans.append(SentenceSpan(text[start:end], start, end))
    return spans


# Sentence-final punctuation of scripts without a space after it, and of those with one.
_TIGHT = "。｡！？．။។៕"
_STOPS = ".!?…‼⁇⁈⁉‽؟۔।॥։።፧᙮᠃"
_CLOSERS = "\"'”’»›)\\]}*_」』）】》〉"
_STOP = re.compile(
    rf"(?P<stop>[{_TIGHT}{_STOPS}]+)(?P<closers>[{_CLOSERS}]*)"
    r"(?:\[\d{1,4}\]){0,9}"  # footnote marks, as in Wikipedia.[1]
)
_OPENERS = re.compile(r"[\"'“‘«‹(\[{¿¡*_`„「『（【《〈]*")
_SPACE = re.compile(r"\s*")
_CLOSER_APART = re.compile(r"(?:\"|''|”|’’|[)\]]|-R[RCS]B-)(?!\S)")
# A word without a space after the stop: `the end.The next`.
_GLUED = re.compile(r"[A-Z][a-z]*(?=[\s,'’])")
_GOES_ON = re.compile(r"[,;:.!?…]|[-–—]+\s*[a-z]")
# `"Who?" Tom Sawyer asked` is one sentence.
_SAYS = re.compile(
    r"(?:[A-Z][\w'’-]{0,20}\.?\s){1,3}"
    r"(?:said|asked|cried|replied|answered|exclaimed|shouted|inquired|demanded|repeated|whispered"
    r"|returned|continued|called|added|says|asks|murmured|muttered|screamed|yelled)\b"
)
# `5 p.m. Monday`, `9 a.m. EST`: the phrase continues.
_TIME_GOES_ON = re.compile(
    r"[A-Z]{2,4}\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Jan|Feb|Mar|Apr|May|June|July|Aug|Sep|Oct"
    r"|Nov|Dec|Eastern|Pacific|Central"
)
_CLOSES_PHRASE = frozenset({"a.m", "p.m", "A.M", "P.M", "etc", "Etc"})
_ENUMERATOR = re.compile(r"[(\"“]?(?:\d{1,3}|[A-Za-z]|[ivxlcIVXLC]{1,5})\\?\Z")
_INSIDE_SENTENCE = frozenset(
    {"e.g", "i.e", "E.g", "I.e", "eg", "ie", "vs", "cf", "viz", "approx", "ca", "P.S"}
)
# What may precede an abbreviation without a space.
_INSIDE_WORD = re.compile(r"--|[\"'“‘«(\[{*_—–/,;:]")


def _cut(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences between two positions that no sentence crosses."""
    start = counted = first
    quotes = 0
    for found in _STOP.finditer(text, first, last):
        if found.start() < start:
            continue
        end = found.end()
        following = _skip(_SPACE, text, end, last)
        if (apart := _CLOSER_APART.match(text, following, last)) is not None:
            # In tokenized text, a straight quotation mark closes one that the sentence has opened.
            if apart.group() == '"':
                quotes += text.count('"', counted, following)
                counted = following
            if apart.group() != '"' or quotes % 2:
                end = apart.end()
                following = _skip(_SPACE, text, end, last)
        if following >= last:
            break
        if _ends(text, start, found, end, following, last):
            yield start, end
            start = counted = following
            quotes = 0
    tail = text[start:last].rstrip()
    if tail:
        yield start, start + len(tail)


def _ends(text: str, start: int, found: re.Match[str], end: int, following: int, last: int) -> bool:
    """Return whether this stop ends the sentence; the text continues at `following`."""
    stop, closers = found["stop"], found["closers"]
    if stop[-1] in _TIGHT:
        # 「行く。」と言った continues after its quotation.
        return not closers or following > end
    if following == end:
        return _is_glued(text, found, closers, last)
    if _GOES_ON.match(text, following):
        return False
    if text[found.start() - 1 : found.start()] == "(" and closers[:1] == ")":
        return False  # a doubt (?) in passing
    letter = _first_letter(text, following, last)
    if letter.islower() and not _ends_before_small(text, start, found):
        return False
    if stop in ("!", "?", "!?", "?!") and closers and _SAYS.match(text, following, last):
        return False
    if stop != ".":
        return True
    return not _is_abbreviation(text, start, found.start(), following, letter)


def _ends_before_small(text: str, start: int, found: re.Match[str]) -> bool:
    """Return whether a stop before a lowercase letter ends a sentence nevertheless."""
    stop, place = found["stop"], found.start()
    if found["closers"] or stop in {"!", "…"} or stop.startswith(".."):
        return False  # "Stop!" he said; and so ... on
    if "?" in stop or text[start].islower():  # a text without capitals
        return True
    # No abbreviation is this long.
    last_letters = text[max(start, place - 5) : place]
    return len(last_letters) == 5 and last_letters.isalpha() and last_letters.islower()


def _is_glued(text: str, found: re.Match[str], closers: str, last: int) -> bool:
    place = found.start()
    return (
        not closers
        and place >= 2
        and found["stop"] in {".", "!", "?"}
        and text[place - 2 : place].isalpha()
        and text[place - 2 : place].islower()
        and _GLUED.match(text, found.end(), last) is not None
    )


def _is_abbreviation(text: str, start: int, place: int, following: int, letter: str) -> bool:
    """Return whether the period at `place` only abbreviates or numbers: the sentence continues."""
    near = text[max(start, place - 60) : place]
    parts = ["", *near.split()]
    word = "" if near[-1:].isspace() else parts.pop()
    before = parts[-1] if parts else ""
    if place - len(word) == start and _ENUMERATOR.match(word):
        return True  # 1. the number of a list item
    bare = _INSIDE_WORD.split(word)[-1]
    if len(bare) < len(word):
        before = word[len(word) - len(bare) - 1]
    after = text[following : following + 16]
    if bare in TITLES or bare in _INSIDE_SENTENCE:
        return True
    if not owns_period(bare, before, after):
        return False
    if len(bare) == 1 or after[0] in "([":
        return True
    if bare in _CLOSES_PHRASE:
        return not letter.isupper() or _TIME_GOES_ON.match(after) is not None
    opened = after.lstrip("\"'“‘«*_`")
    if len(opened) < len(after) and letter.isupper() and not is_dotted(bare):
        return False  # at Smith & Co. "Yes," he said
    return not starts_sentence(opened)


def _first_letter(text: str, place: int, last: int) -> str:
    """Return the first character after opening quotation marks and brackets; empty at the end."""
    place = _skip(_OPENERS, text, place, last)
    return text[place : place + 1]


def _skip(pattern: re.Pattern[str], text: str, place: int, last: int) -> int:
    """Return where a match that may be empty ends."""
    found = pattern.match(text, place, last)
    return place if found is None else found.end()


_ITEM = re.compile(r"\s*(?:[-*•‣◦▪–—+]\s+|\(?(?:\d{1,3}|[A-Za-z])[.)]\s+|#{1,6}\s)")


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches that no sentence crosses: paragraphs, list items, headings."""
    paragraph: list[tuple[int, int]] = []
    place = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            paragraph.append((place, place + len(line.rstrip())))
        if not line.strip() or line[-1] in "\f\u2029":
            yield from _lines(text, paragraph)
            paragraph = []
        place += len(line)
    yield from _lines(text, paragraph)


def _lines(text: str, paragraph: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a paragraph, cut where a line was ended on purpose."""
    if not paragraph:
        return
    longest = max(end - start for start, end in paragraph)
    first, previous = paragraph[0]
    previous_start = first
    for start, end in paragraph[1:]:
        short = 2 * (previous - previous_start) < longest and text[previous - 1] not in ",;-–—"
        if _ITEM.match(text, start, end) or (
            short and not _first_letter(text, start, end).islower()
        ):
            yield _trim(text, first, previous)
            first = start
        previous_start, previous = start, end
    yield _trim(text, first, previous)


def _trim(text: str, first: int, last: int) -> tuple[int, int]:
    return _skip(_SPACE, text, first, last), last
