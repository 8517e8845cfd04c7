from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.tag_schemes import (
    TaggedSpan,
    all_tags,
    is_tag,
    may_follow,
    spans_to_tags,
    tags_to_spans,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("O O", []),
        ("B-A I-A O B-A", [(0, 2, "A"), (3, 4, "A")]),
        ("I-A I-A B-A I-B", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # IOB1
        ("S-A B-A I-A E-A S-B", [(0, 1, "A"), (1, 4, "A"), (4, 5, "B")]),
        ("O I-A O", [(1, 2, "A")]),  # from here on malformed
        ("B-A I-B I-B", [(0, 1, "A"), (1, 3, "B")]),
        ("B-A O E-A", [(0, 1, "A"), (2, 3, "A")]),
        ("E-A E-A I-A", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        ("S-A I-A S-A", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        ("B-A-B I-A-B B-A", [(0, 2, "A-B"), (2, 3, "A")]),
    ],
)
def test_spans(written: str, meant: list[tuple[int, int, str]]) -> None:
    assert [tuple(span) for span in tags_to_spans(written.split())] == meant


@st.composite
def apart(draw: st.DrawFn) -> tuple[list[TaggedSpan], int]:
    """Spans that do not overlap, many of them touching."""
    found, place = [], 0
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from("AB")))
    ):
        found.append(TaggedSpan(place + gap, place + gap + length, kind))
        place += gap + length
    return found, place + draw(st.integers(0, 2))


@given(apart(), st.sampled_from(["IOB1", "IOB2", "BIOES"]))
def test_spans_come_back_from_tags(case: tuple[list[TaggedSpan], int], scheme: str) -> None:
    found, length = case
    made = spans_to_tags(found, length, scheme)  # type: ignore[arg-type]
    assert len(made) == length
    assert tags_to_spans(made) == found


@given(apart(), st.sampled_from(["IOB2", "BIOES"]))
def test_well_formed_tags_may_follow(case: tuple[list[TaggedSpan], int], scheme: str) -> None:
    made = [None, *spans_to_tags(*case, scheme), None]  # type: ignore[arg-type]
    assert all(may_follow(a, b, scheme) for a, b in pairwise(made))  # type: ignore[arg-type]


def test_iob1_marks_only_what_touches() -> None:
    assert spans_to_tags(
        [TaggedSpan(0, 1, "A"), TaggedSpan(1, 2, "A"), TaggedSpan(2, 3, "B")], 3, "IOB1"
    ) == (
        "I-A",
        "B-A",
        "I-B",
    )


@pytest.mark.parametrize("scheme", ["IOB2", "BIOES"])
def test_what_may_not_follow_does_not_survive_reading(scheme: str) -> None:
    """A pair is forbidden exactly if writing the spans it means gives other tags."""
    tags = all_tags(["A", "B"], scheme)  # type: ignore[arg-type]
    for before in tags:
        for after in tags:
            # Close whatever is open on either side, so that only the step between them counts.
            head = {"I": ["B" + before[1:]], "E": ["B" + before[1:]]}.get(before[0], [])
            tail = {"B": ["E" + after[1:]], "I": ["E" + after[1:]]}.get(after[0], [])
            sequence = [*head, before, after, *(tail if scheme == "BIOES" else [])]
            whole = spans_to_tags(tags_to_spans(sequence), len(sequence), scheme) == tuple(sequence)  # type: ignore[arg-type]
            assert may_follow(before, after, scheme) == whole, sequence  # type: ignore[arg-type]


def test_edges() -> None:
    assert not may_follow(None, "I-A") and may_follow(None, "B-A")
    assert may_follow("I-A", None) and not may_follow("I-A", None, "BIOES")
    assert may_follow("E-A", None, "BIOES") and not may_follow(None, "E-A", "BIOES")


@pytest.mark.parametrize("tag", ["", "o", "0", "B", "B-", "X-PER", "PER", "b-PER", "B_PER", "B- A"])
def test_no_tag(tag: str) -> None:
    assert not is_tag(tag)


@pytest.mark.parametrize("tag", ["O", "B-PER", "S-A", "E-A-B", "I-ARGM-TMP"])
def test_tag(tag: str) -> None:
    assert is_tag(tag)
