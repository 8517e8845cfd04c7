from __future__ import annotations

import numpy as np

from elmokit.engine.lexicon import WORDS_AT_ONCE, Lexicon
from elmokit.text.dictionary import Dictionary

RANDOM = np.random.default_rng(0)
ENTRIES = Dictionary(["the", "<oov>", "<bos>", "天" * 6, "x" * 7])
WEIGHTS = {
    "words.embedding": RANDOM.normal(size=(5, 9)),
    "words.projection": RANDOM.normal(size=(9, 13)).astype(np.float32),
}
LEXICON = Lexicon(ENTRIES, WEIGHTS, max_characters=8)


def test_it_is_the_product_of_the_words_row() -> None:
    words = ["the", "The", "<bos>", "", "天" * 50, "x" * 7, "x" * 6]
    rows = [0, 1, 2, 1, 3, 1, 1]  # seven x are cut to six, which are not known
    expected = WEIGHTS["words.embedding"][rows] @ WEIGHTS["words.projection"]
    found = LEXICON.vectors(words)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-5)


def test_a_word_does_not_depend_on_its_neighbors() -> None:
    words = [ENTRIES[i % 5] for i in range(2 * WORDS_AT_ONCE + 3)]
    together = LEXICON.vectors(words)
    for i, entry in enumerate(ENTRIES):
        assert (together[i::5] == LEXICON.vectors([entry])).all()


def test_no_words() -> None:
    assert LEXICON.vectors([]).shape == (0, 13)
