from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import GOLDEN

from elmokit.text.characters import PADDING, encode_sentences, encode_words

# Any code point at all, lone surrogates included.
any_text = st.text(st.characters(codec=None), max_size=80)


def plain_scheme(word: str, length: int) -> list[int]:
    """The scheme of DESIGN's facts, one word at a time."""
    if word in ("<S>", "</S>"):
        row = [258, 256 if word == "<S>" else 257, 259]
    else:
        row = [258, *word.encode("utf-8", "ignore")[: length - 2], 259]
    return row + [PADDING] * (length - len(row))


def test_as_the_original_code_has_it() -> None:
    """Nasty words, encoded by AllenNLP's own mapper and by simple_elmo's."""
    for case in json.loads((GOLDEN / "characters.json").read_text(encoding="utf-8")):
        for length in (50, 16):
            ids = encode_sentences([[case["word"]]], length)
            assert ids.tolist() == [[case[str(length)]]], case["word"]


@given(st.lists(any_text, max_size=8), st.integers(3, 60))
def test_vectorised_is_the_plain_scheme(words: list[str], length: int) -> None:
    ids, lengths = encode_words(words, length)
    assert ids.shape == (len(words), length)
    assert ids.tolist() == [plain_scheme(word, length) for word in words]
    assert lengths.tolist() == [(row != PADDING).sum() for row in ids]


def test_a_batch_is_shifted_by_one_and_zero_beyond_its_sentences() -> None:
    ids = encode_sentences([["a"], [], ["b", "c"]])
    assert ids.shape == (3, 2, 50)
    assert (ids[1] == 0).all() and (ids[0, 1] == 0).all()
    assert (ids[2, 1] == encode_words(["c"])[0][0] + 1).all()
    assert ids.dtype == np.int64


def test_no_sentences() -> None:
    assert encode_sentences([]).shape == (0, 0, 50)
