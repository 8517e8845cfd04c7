from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import GOLDEN

from elmokit.text.characters import (
    ALPHABET_MARKS,
    PADDING,
    ByteEncoder,
    CodePointEncoder,
    encode_sentences,
    encode_words,
)
from elmokit.text.dictionary import Dictionary

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
def test_vectorized_is_the_plain_scheme(words: list[str], length: int) -> None:
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


# -- code points -----------------------------------------------------------------------------------

_LETTERS = ["a", "é", "天", "\u3000", "🙂", "\ud800", *"<bos>", "ab"]
ALPHABET = Dictionary(["<bos>", *_LETTERS, "<eow>", "<bow>", "<eos>", "<oov>", "<pad>"])


def plain_code_points(word: str, length: int) -> list[int]:
    """ELMoForManyLangs' own loop, with the beginning and end of a word as it has them."""
    number = {entry: i for i, entry in enumerate(ALPHABET)}
    row = [number["<pad>"]] * length
    row[0] = number["<eow>"]
    if word in ("<bos>", "<eos>"):
        row[1], row[2] = number[word], number["<bow>"]
        return row
    word = word[: length - 2]
    for k, character in enumerate(word):
        row[k + 1] = number.get(character, number["<oov>"])
    row[len(word) + 1] = number["<bow>"]
    return row


words_of_the_alphabet = st.text(st.sampled_from("aéb天\u3000🙂<bos>x\ud800"), max_size=12)


@given(
    st.lists(any_text | words_of_the_alphabet | st.sampled_from(ALPHABET_MARKS), max_size=8),
    st.integers(7, 20),
)
def test_code_points_are_the_plain_scheme(words: list[str], length: int) -> None:
    ids, lengths = CodePointEncoder(ALPHABET, length).encode(words)
    assert ids.dtype == np.int16 and ids.shape == (len(words), length)
    assert ids.tolist() == [plain_code_points(word, length) for word in words]
    assert lengths.tolist() == [
        3 if w in ("<bos>", "<eos>") else min(len(w), length - 2) + 2 for w in words
    ]


def test_both_schemes_say_what_a_sentence_needs() -> None:
    for scheme in (ByteEncoder(20), CodePointEncoder(ALPHABET, 20)):
        ids, lengths = scheme.encode(scheme.marks)
        assert lengths.tolist() == [3, 3]
        assert (ids[:, 3:] == scheme.padding).all() and (ids[:, :3] != scheme.padding).all()
        assert ids[0, 1] != ids[1, 1]
    assert ByteEncoder(20).encode(["<bos>"])[1].tolist() == [7], "there it is a word"
    assert CodePointEncoder(ALPHABET, 20).encode(["<S>"])[1].tolist() == [5]
