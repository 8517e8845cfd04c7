from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.text.vocabulary import Vocabulary

words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1))


@given(words)
def test_round_trip(listed: list[str]) -> None:
    assert list(Vocabulary.parse(Vocabulary(listed).dump())) == listed


def test_words_are_found_and_others_unknown() -> None:
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "bank"])
    assert vocabulary.index_of("bank") == 4
    assert vocabulary.index_of("Bank") == 2
    assert "the" in vocabulary and "a" not in vocabulary
    assert vocabulary.missing_marks() == []
    assert vocabulary[3] == "the" and len(vocabulary) == 5


def test_a_list_without_unknown() -> None:
    vocabulary = Vocabulary(["<S>", "a"])
    assert vocabulary.missing_marks() == ["</S>", "<UNK>"]
    with pytest.raises(KeyError, match="<UNK>"):
        vocabulary.index_of("b")


def test_the_first_of_two_equal_lines_counts() -> None:
    assert Vocabulary(["a", "b", "a"]).index_of("a") == 0


def test_only_newlines_end_a_line() -> None:
    """A line separator inside a word must not shift all words behind it."""
    assert list(Vocabulary.parse("a\u2028b\nc\x0bd\r\n".encode())) == ["a\u2028b", "c\x0bd"]


def test_not_utf8_names_the_line() -> None:
    with pytest.raises(FormatError, match=r"words\.txt, line 2: not UTF-8 \(byte 0xe9\)"):
        Vocabulary.parse(b"a\ncaf\xe9\n", "words.txt")
