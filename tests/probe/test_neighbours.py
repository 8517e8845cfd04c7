from __future__ import annotations

import numpy as np
import pytest

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.neighbours import Uses, in_context, neighbours, places_of, unit_length

CORPUS = ["The bank of the river .", "A bank lends money .", "Nothing here .", "Bank on it ."]


def test_the_nearest_are_those_of_the_largest_cosine(elmo: Elmo) -> None:
    _, vector = in_context(elmo, "bank", "My bank lends me money .")
    found = Uses(elmo, CORPUS).nearest(vector, 4)
    every = []
    for words, vectors in elmo.items(CORPUS, "top"):
        for place, other in enumerate(vectors):
            cosine = vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)
            every.append((cosine, list(words), place))
    every.sort(key=lambda each: -each[0])
    assert [(n.words, n.place) for n in found] == [(words, place) for _, words, place in every[:4]]
    np.testing.assert_allclose([n.similarity for n in found], [e[0] for e in every[:4]], atol=1e-5)


def test_the_same_sentence_is_no_neighbour(elmo: Elmo) -> None:
    found = neighbours(elmo, "bank", CORPUS[1], CORPUS, number=100)
    assert len(found) == 6 + 3 + 4
    assert all(list(n.words) != elmo.tokenize(CORPUS[1]) for n in found)
    _, vector = in_context(elmo, "bank", CORPUS[1])
    best = Uses(elmo, CORPUS).nearest(vector, 1)[0]
    assert best.words == elmo.tokenize(CORPUS[1]) and best.place == 1
    assert best.similarity == pytest.approx(1.0, abs=1e-6)


def test_one_word_only(elmo: Elmo) -> None:
    uses = Uses(elmo, CORPUS)
    assert len(uses) == 6 + 5 + 3 + 4
    every = uses.nearest(np.ones(elmo.dim, np.float32), 100)
    found = uses.nearest(np.ones(elmo.dim, np.float32), 100, word="bank")
    assert found == [n for n in every if n.words[n.place] in ("bank", "Bank")]
    assert len(found) == 3
    assert uses.nearest(np.ones(elmo.dim, np.float32), word="absent") == []


def test_a_layer_can_be_chosen(elmo: Elmo) -> None:
    """Layer 0 knows no context: every use of a word is the same."""
    _, vector = in_context(elmo, "bank", "One bank .", layer=0)
    found = Uses(elmo, CORPUS, layer=0).nearest(vector, 2, word="bank")
    assert [n.similarity for n in found] == pytest.approx([1.0, 1.0], abs=1e-6)
    with pytest.raises(InputError, match="all"):
        Uses(elmo, CORPUS, layer="all")


def test_what_cannot_be_asked(elmo: Elmo) -> None:
    with pytest.raises(InputError, match="'shore' is not in the sentence"):
        in_context(elmo, "shore", "The bank .")
    with pytest.raises(InputError, match="number is 0"):
        neighbours(elmo, "bank", "The bank .", CORPUS, number=0)


def test_places_and_lengths() -> None:
    assert places_of(["Play", "the", "play"], "play") == [0, 2]
    unit = unit_length(np.array([[3, 4], [0, 0]], np.float32))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0]])
