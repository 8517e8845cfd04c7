from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.neighbors import measure
from elmokit.probe.neighbors.index import Index
from elmokit.probe.neighbors.measure import find_neighbors, find_static_words
from elmokit.probe.neighbors.render import render_figures, render_tables
from elmokit.probe.neighbors.word_use import embed_word
from elmokit.probe.results import Measurement

CORPUS = ["The bank of the river .", "A bank lends money .", "Nothing here .", "Bank on it ."]
QUERIES = ["One bank .", "The other bank !"]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("bank 1 0\nBank 1 0\nmoney 2 1\nriver 0 1\nshore -1 1\n")
    return path


def test_static_vectors(vectors: Path) -> None:
    found = find_static_words(str(vectors), "Bank", 2)
    assert [word for word, _ in found.words] == ["money", "river"]
    assert [cosine for _, cosine in found.words] == pytest.approx([2 / 5**0.5, 0], abs=1e-5)
    assert find_static_words(str(vectors), "MONEY", 1).words[0][0] == "bank"
    assert find_static_words(str(vectors), "absent", 2).words == []


@pytest.fixture
def measured(elmo: Elmo, vectors: Path, tmp_path: Path) -> Measurement:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    return find_neighbors(elmo, "bank", QUERIES, index, number=3, static_vectors=str(vectors))


def test_the_measurement(measured: Measurement, elmo: Elmo) -> None:
    assert measured["kind"] == "neighbors" and measured["layer"] == 2
    assert measured["corpus"] == {"words": 18, "sentences": 4, "forms": 14}
    assert measured["uses_of_the_word"] == 3 and measured["exact"]
    for question, sentence in zip(measured["questions"], QUERIES, strict=True):
        assert question["words"] == elmo.tokenize(sentence)
        vector = embed_word(elmo, "bank", sentence).vector
        cosine, words, position = max(
            (vector @ other / np.linalg.norm(vector) / np.linalg.norm(other), list(words), position)
            for words, others in elmo.items(CORPUS, "top")
            for position, other in enumerate(others)
        )
        first = question["neighbors"][0]
        assert (first["words"], first["place"]) == (words, position)
        assert first["similarity"] == pytest.approx(cosine, abs=2e-3)
        assert len(question["neighbors"]) == 3
    listed = sum(
        each["words"][each["place"]] in ("bank", "Bank")
        for question in measured["questions"]
        for each in question["neighbors"]
    )
    assert len(measured["other_uses"]) >= 3 - listed


def test_tables_and_figure(measured: Measurement, vectors: Path) -> None:
    words, one, two = render_tables(measured)
    assert words.rows[0] == (str(vectors), "money, river, shore")
    assert words.rows[1][0] == "characters" and "bank" not in words.rows[1][1].lower()
    assert "One *bank* ." in one.title and "The other *bank* !" in two.title
    for table, question in zip((one, two), measured["questions"], strict=True):
        for row, each in zip(table.rows, question["neighbors"], strict=True):
            assert row[0] == f"{each['similarity']:.3f}"
            assert row[2] == each["words"][each["place"]]
    assert "18 uses of 14 words in 4 sentences" in two.note and not one.note
    (picture,) = render_figures(measured)
    for sentence in ("One *bank* .", "The other *bank* !"):
        assert sentence in picture.svg
    for question in measured["questions"]:
        for each in question["neighbors"]:
            assert f"{each['similarity']:.3f}: " in picture.svg
    again = render_figures({**measured, "questions": measured["questions"][:1]})[0].svg
    assert "The other" not in again


def test_files_are_indexed_in_the_cache(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    path.write_text("\n".join(CORPUS))
    stages: list[str] = []
    first = find_neighbors(
        elmo,
        "bank",
        "One bank .",
        path,
        layer=1,
        static_vectors=None,
        callback=lambda stage, done, total: stages.append(stage),
    )
    assert stages[-1] == "embedding, 18 words"
    index = Index.from_files(elmo, [path], layer=1)
    assert index.directory.parent == tmp_path / "cache" / "indexes"
    again = find_neighbors(elmo, "bank", [["One", "bank", "."]], index, static_vectors=None)
    assert again == first
    assert list(first["signature"]["data"]) == ["corpus"] and first["layer"] == 1
    with pytest.raises(InputError, match="'shore' is not in the sentence"):
        find_neighbors(elmo, "shore", "One bank .", "nowhere.txt")


def test_nothing_found(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    found = find_neighbors(elmo, "shore", "A shore .", index, same_word=True, static_vectors=None)
    assert found["questions"][0]["neighbors"] == []
    assert "no other use of “shore”" in render_tables(found)[-1].note
    assert render_figures(found)


def test_another_model(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    other = Elmo(random_bilm(small_config(), seed=5))
    with pytest.raises(InputError, match="another model"):
        find_neighbors(other, "bank", "A bank .", index)


GERMAN = """die katze sitzt unter einem hohen baum während draußen der regen gegen
unsere fenster schlägt
niemand wusste genau warum sie gestern nicht gekommen waren obwohl alle lange gewartet hatten"""


def test_english_vectors_are_not_shown_beside_another_language(
    elmo: Elmo, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(GERMAN + "\n", encoding="utf-8")
    known = ["die", "der", "sie", "nicht", "baum", "regen", "bank", "money"]
    monkeypatch.setattr(measure, "has_glove", lambda: True)
    monkeypatch.setattr(measure, "read_static", lambda source: (known, np.eye(8, dtype=np.float32)))
    german = find_neighbors(elmo, "baum", "Ein Baum .", corpus)
    assert german["static"] is None and german["signature"]["vectors"] is None
    assert 0 < german["glove_coverage"] < 0.2
    assert "GloVe is left out" in render_tables(german)[0].note
    asked = find_neighbors(elmo, "baum", "Ein Baum .", corpus, static_vectors="glove")
    assert asked["static"]["name"] == "GloVe" and not render_tables(asked)[0].note
    monkeypatch.setattr(
        measure, "read_static", lambda source: (GERMAN.split(), np.eye(len(GERMAN.split())))
    )
    fitting = find_neighbors(elmo, "baum", "Ein Baum .", corpus)
    assert fitting["glove_coverage"] == 1 and fitting["static"]["name"] == "GloVe"
    monkeypatch.setattr(measure, "read_static", lambda source: (known, np.eye(8, dtype=np.float32)))
    corpus.write_text("Ein Baum .\n")
    assert find_neighbors(elmo, "baum", "Der Baum .", corpus)["static"] is not None, "too few words"
