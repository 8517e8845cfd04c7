from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.text.dictionary import Dictionary

# Any code point at all, lone surrogates and line breaks included.
any_text = st.text(st.characters(codec=None), max_size=8)


@given(st.lists(any_text, unique=True, max_size=30))
def test_round_trip(entries: list[str]) -> None:
    dictionary = Dictionary(entries)
    assert Dictionary.parse(dictionary.dump(), "x") == dictionary
    assert list(dictionary) == entries and len(dictionary) == len(entries)
    assert [dictionary.index_of(entry) for entry in entries] == list(range(len(entries)))


def test_what_it_lacks() -> None:
    dictionary = Dictionary(["a", "\n", ""])
    assert dictionary.index_of("b") == -1 and dictionary.index_of("b", 7) == 7
    assert "\n" in dictionary and "b" not in dictionary
    assert dictionary[1] == "\n" and dictionary[1:] == ("\n", "")
    assert dictionary != Dictionary(["\n", "a", ""])
    assert hash(dictionary) == hash(Dictionary(["a", "\n", ""]))
    assert repr(dictionary) == "Dictionary(3 entries)"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "words.json is not valid JSON"),
        (b"\xff", "words.json is not valid JSON"),
        (b"[" * 100_000, "words.json is not valid JSON"),
        (b'{"a": 1}', "words.json holds a dict; expected a JSON list"),
        (b'["a", 3]', "words.json: entry 1 of a dictionary is 3; expected a string"),
        (b'["a", "b", "a"]', "words.json: a dictionary has 'a' twice"),
        (b"[" + b"9" * 5000 + b"]", "words.json is not valid JSON"),
    ],
)
def test_what_is_none(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message.replace(".", r"\.")):
        Dictionary.parse(data, "words.json")
