from __future__ import annotations

import numpy as np
import pytest

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.neighbors.word_use import embed_word, find_word, unit_length


def test_the_vector_of_each_occurrence(elmo: Elmo) -> None:
    sentence = "Play the play ."
    vectors = elmo.embed(sentence, "top")
    for occurrence, position in ((1, 0), (2, 2)):
        use = embed_word(elmo, "play", sentence, occurrence=occurrence)
        assert use.position == position and list(use.words) == elmo.tokenize(sentence)
        np.testing.assert_array_equal(use.vector, vectors[position])
    with pytest.raises(InputError, match="occurrence is 3, but the sentence has 'play' 2 times"):
        embed_word(elmo, "play", sentence, occurrence=3)
    with pytest.raises(InputError, match="'shore' is not in the sentence"):
        embed_word(elmo, "shore", "The bank .")


def test_all_layers(elmo: Elmo) -> None:
    use = embed_word(elmo, "bank", "One bank .", "all")
    np.testing.assert_array_equal(use.vector, elmo.embed("One bank .", "all")[:, 1])


def test_find_word_ignores_case() -> None:
    assert find_word(["Play", "the", "play"], "play") == [0, 2]


def test_unit_length() -> None:
    unit = unit_length(np.array([[3, 4], [0, 0]], np.float32))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0]])
