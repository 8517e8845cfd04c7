from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.neighbors.index import Index
from elmokit.probe.neighbors.measure import (
    StaticWords,
    neighbors_measured,
    static_neighbors,
)
from elmokit.probe.neighbors.nearest import (
    Uses,
    in_context,
    neighbors,
    one_use,
    places_of,
    unit_length,
)
from elmokit.probe.neighbors.render import pictures, tables
from elmokit.probe.results import Json, signature

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


def test_the_same_sentence_is_no_neighbor(elmo: Elmo) -> None:
    found = neighbors(elmo, "bank", CORPUS[1], CORPUS, number=100)
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
        neighbors(elmo, "bank", "The bank .", CORPUS, number=0)


def test_places_and_lengths() -> None:
    assert places_of(["Play", "the", "play"], "play") == [0, 2]
    unit = unit_length(np.array([[3, 4], [0, 0]], np.float32))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0]])


def test_the_second_time_a_sentence_has_it(elmo: Elmo) -> None:
    sentence = "Play the play ."
    all_of_it = elmo.embed(sentence, "top")
    for at, place in ((1, 0), (2, 2)):
        use = one_use(elmo, "play", sentence, at=at)
        assert use.place == place
        np.testing.assert_array_equal(use.vector, all_of_it[place])
    with pytest.raises(InputError, match="at is 3, but the sentence has 'play' 2 times"):
        one_use(elmo, "play", sentence, at=3)


def test_static_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("bank 1 0\nBank 1 0\nmoney 2 1\nriver 0 1\nshore -1 1\n")
    found = static_neighbors(str(path), "Bank", 2)
    assert [word for word, _ in found.words] == ["money", "river"]
    assert [cosine for _, cosine in found.words] == pytest.approx([2 / 5**0.5, 0], abs=1e-5)
    assert static_neighbors(str(path), "MONEY", 1).words[0][0] == "bank"
    assert static_neighbors(str(path), "absent", 2).words == []


@pytest.fixture
def measured(elmo: Elmo, tmp_path: Path) -> Json:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    static = StaticWords("mine.txt", [("shore", 0.5), ("money", 0.4)])
    return neighbors_measured(
        elmo,
        index,
        "bank",
        ["One bank .", "The other bank !"],
        signature(elmo, {}),
        number=3,
        static=static,
    )


def test_the_measurement(measured: Json, elmo: Elmo) -> None:
    assert measured["kind"] == "neighbors" and measured["layer"] == 2
    assert measured["corpus"] == {"words": 18, "sentences": 4, "forms": 14}
    assert measured["uses_of_the_word"] == 3 and measured["exact"]
    for question, sentence in zip(
        measured["questions"], ["One bank .", "The other bank !"], strict=True
    ):
        assert question["words"] == elmo.tokenize(sentence)
        _, vector = in_context(elmo, "bank", sentence)
        best = Uses(elmo, CORPUS).nearest(vector, 1)[0]
        first = question["neighbors"][0]
        assert (first["words"], first["place"]) == (best.words, best.place)
        assert first["similarity"] == pytest.approx(best.similarity, abs=2e-3)
        assert len(question["neighbors"]) == 3
    shown = sum(
        each["words"][each["place"]] in ("bank", "Bank")
        for q in measured["questions"]
        for each in q["neighbors"]
    )
    assert len(measured["other_uses"]) >= 3 - shown


def test_it_is_shown(measured: Json) -> None:
    words, one, two = tables(measured)
    assert words.rows[0] == ("mine.txt", "shore, money")
    assert words.rows[1][0] == "characters" and "bank" not in words.rows[1][1].lower()
    assert "One *bank* ." in one.title and "The other *bank* !" in two.title
    for table, question in zip((one, two), measured["questions"], strict=True):
        for row, each in zip(table.rows, question["neighbors"], strict=True):
            assert row[0] == f"{each['similarity']:.3f}"
            assert row[2] == each["words"][each["place"]]
    assert "18 uses of 14 words in 4 sentences" in two.note and not one.note
    (picture,) = pictures(measured)
    for sentence in ("One *bank* .", "The other *bank* !"):
        assert sentence in picture.svg
    for question in measured["questions"]:
        for each in question["neighbors"]:
            assert f"{each['similarity']:.3f}: " in picture.svg
    again = pictures({**measured, "questions": measured["questions"][:1]})[0].svg
    assert "The other" not in again


def test_nothing_found(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    found = neighbors_measured(
        elmo, index, "shore", ["A shore ."], signature(elmo, {}), same_word=True
    )
    assert found["questions"][0]["neighbors"] == []
    assert "no other use of “shore”" in tables(found)[-1].note
    assert pictures(found)


def test_another_model(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    other = Elmo(random_bilm(small_config(), seed=5))
    with pytest.raises(InputError, match="another model"):
        neighbors_measured(other, index, "bank", ["A bank ."], signature(other, {}))
