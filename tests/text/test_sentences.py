import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.text.sentences import SentenceSpan, split_sentences

# Sentences which, joined by spaces, are found again.
TEXTS = [
    ["Mr. Smith left.", "(He was tired.)", "So was I.", "Then Tom came."],
    ["He lives in the U.S.", "He likes the U.S. Navy.", "It is in Washington, D.C.", "The end."],
    [
        "We met at 5 p.m. Monday.",
        "We left at 9 p.m.",
        "Tom slept at 1 a.m. EST.",
        "Cakes etc.",
        "Yes.",
    ],
    ["J. R. R. Tolkien wrote it.", "Vladimir I. Lenin read it.", "He chose plan B.", "It failed."],
    ["Pi is 3.14.", "See No. 5 on p. 7.", "He said no.", "In 1990.", "5 men came."],
    ['He said "Stop."', "Then he left...", "And so on... and on.", "Wait… what?", "Wait…", "What?"],
    ['"Why?" he asked.', '"Why?" Tom Sawyer asked.', '"Go!" I cried.', "Wow!!", "Really?!", "Yes."],
    [
        "Foo Inc. and Bar Ltd. of Main St. won.",
        "Lake St. Clair is big.",
        "He joined Foo Inc.",
        "It grew.",
    ],
    [
        "Some (e.g. Tom) left, i.e. Tom did.",
        "Leary v. United States ended.",
        "Hal, Sr. (1892) sang.",
    ],
    ["A doubt (?) remains.", "It came,--Mr. Skee said.", "Visit example.com.", "Foo.[1]", "Bar."],
    ["i went home.", "then i slept.", "is it good?", "what's up?"],
    ["It was the end of the birthday.", "she had been dreading it."],
    [
        "She went to the bank .",
        "I do n't know .",
        '" Stop . "',
        "Then he left .",
        "`` Yes . ''",
        "No .",
    ],
    ["1. First of all.", "2. Second."],
    ["यह एक है।", "यह दो है।"],
    ["هل أنت؟", "نعم۔", "شكرا."],
    ["А. С. Пушкин умер.", "Это всё."],
]


@pytest.mark.parametrize("sentences", TEXTS)
def test_sentences(sentences: list[str]) -> None:
    assert [span.text for span in split_sentences(" ".join(sentences))] == sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "这是一句。这是另一句！「行く。」と言った。",
            ["这是一句。", "这是另一句！", "「行く。」と言った。"],
        ),
        ("the end.The next", ["the end.", "The next"]),
        ("No stop\n\nhere", ["No stop", "here"]),
        ("No stop\r\n \r\nhere", ["No stop", "here"]),
        ("A line that is\nwrapped. And one\nmore.", ["A line that is\nwrapped.", "And one\nmore."]),
        (
            "History\nThe town was founded by a man whose name\nwas lost. It grew.",
            ["History", "The town was founded by a man whose name\nwas lost.", "It grew."],
        ),
        ("Buy:\n- milk\n- two eggs\n1) bread", ["Buy:", "- milk", "- two eggs", "1) bread"]),
        ("...", ["..."]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_lines_and_edges(text: str, expected: list[str]) -> None:
    assert [span.text for span in split_sentences(text)] == expected


def test_places() -> None:
    assert split_sentences(" One. Two ") == [SentenceSpan("One.", 1, 5), SentenceSpan("Two", 6, 9)]


_PIECES = st.sampled_from(
    "a|A|I|the|The|U.S.|Mr.|No.|1|.|?|!|…|。|\"|'|(|)| |\n|\n\n|- |[1]|,|\u2029|\x00|etc.".split(
        "|"
    )
)


@given(st.text(st.characters()) | st.lists(_PIECES).map("".join))
def test_spans_cover_the_text(text: str) -> None:
    spans = split_sentences(text)
    for span in spans:
        assert span.text == text[span.start : span.end] == span.text.strip() != ""
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert "".join("".join(span.text for span in spans).split()) == "".join(text.split())


_UNITS = 'a|.|. |.(|. (|. " |a. |A. |Mr. |U.S. |a?" A |\n|- a\n|A\n|。|.[1]|...| |1. '


@pytest.mark.parametrize("unit", _UNITS.split("|"))
def test_time_is_linear(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            split_sentences(text)
            best = min(best, time.process_time() - begin)
        return best

    # Eight times the text: 8 if linear, 64 if quadratic.
    assert seconds(40_000) < 30 * max(seconds(5_000), 1e-3)
