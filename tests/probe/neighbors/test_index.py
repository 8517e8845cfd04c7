from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.probe.neighbors import graph, indexing
from elmokit.probe.neighbors.index import MANIFEST, Index
from elmokit.probe.neighbors.word_use import embed_word

CORPUS = [
    "The bank of the river .",
    "A bank lends money .",
    "Nothing here .",
    "Bank on it .",
    "A bank lends money .",
]


def made_up(sentences: int, seed: int = 0) -> list[list[str]]:
    """Sentences of made-up words; hardly two of them are equal."""
    random = np.random.default_rng(seed)
    letters = np.array(list("abcdefghij"))
    words = ["".join(random.choice(letters, random.integers(1, 6))) for _ in range(300)]
    return [
        [words[k] for k in random.integers(0, 300, random.integers(3, 9))] for _ in range(sentences)
    ]


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_it_finds_what_exact_search_finds(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS[:4], tmp_path / "index")
    vector = embed_word(elmo, "bank", "My bank lends me money .").vector
    uses = [
        (vector @ other / np.linalg.norm(vector) / np.linalg.norm(other), tuple(words), position)
        for words, others in elmo.items(CORPUS[:4], "top")
        for position, other in enumerate(others)
    ]
    firsts: dict[tuple[str, ...], tuple[float, int]] = {}
    for cosine, words, position in sorted(uses, key=lambda use: -use[0]):
        firsts.setdefault(words, (cosine, position))
    found = index.search(vector, 100)
    assert [(tuple(n.words), n.position) for n in found] == [
        (words, position) for words, (_, position) in firsts.items()
    ]
    np.testing.assert_allclose(
        [n.similarity for n in found], [cosine for cosine, _ in firsts.values()], atol=2e-3
    )
    assert [index.get_use(n.row) for n in found] == [(n.words, n.position) for n in found]
    assert [n.similarity for n in index.search(vector, 2)] == [n.similarity for n in found[:2]]


def test_filters(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    words, _, vector = embed_word(elmo, "bank", CORPUS[1])
    assert len(index) == 6 + 5 + 3 + 4 + 5
    assert index.find_uses("BANK").tolist() == [1, 7, 14, 19]
    found = index.search(vector, 100)
    assert len(found) == 4, "one per sentence, and the repeated one once"
    assert (found[0].words, found[0].position, found[0].row) == (words, 1, 7)
    assert found[0].similarity == pytest.approx(1, abs=1e-3)
    others = index.search(vector, 100, exclude=words)
    assert others == found[1:], "its repetition is no neighbor either"
    only = index.search(vector, 100, word="bank", exclude=words)
    assert sorted(n.words[n.position] for n in only) == ["Bank", "bank"]
    assert index.search(vector, word="absent") == []
    with pytest.raises(InputError, match="number is 0"):
        index.search(vector, 0)
    with pytest.raises(InputError, match=r"\(3,\).*12 numbers"):
        index.search(vector[:3])


def test_the_graph_finds_nearly_everything(tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    elmo = Elmo(random_bilm(small_config(width=16)), threads=1)
    reports = []
    index = Index.build(
        elmo,
        made_up(900),
        tmp_path / "index",
        graph_from=1000,
        callback=lambda *what: reports.append(what),
    )
    assert len(index) > 4000 and index.recall is not None and index.recall > 0.95
    assert index.exact_reason == ""
    assert (graph.BUILDING, len(index), len(index)) in reports and "embedding" in {
        report[0] for report in reports
    }
    again = Index.build(elmo, made_up(900), tmp_path / "again", graph_from=1000)
    assert files(again.directory) == files(index.directory), "the same corpus, the same graph"
    hits = total = 0
    for sentence in made_up(30, seed=1):
        vector = embed_word(elmo, sentence[0], sentence).vector
        exact = index.search(vector, 10, exact=True)
        found = index.search(vector, 10)
        assert len(found) == len(exact) == 10
        assert len({tuple(n.words) for n in found}) == 10
        hits += len({n.row for n in found} & {n.row for n in exact})
        total += 10
    assert hits / total > 0.95


def test_more_neighbors_than_the_graph_gives_at_once(elmo: Elmo, tmp_path: Path) -> None:
    """Most candidates may lie in the sentence that is not wanted."""
    pytest.importorskip("usearch")
    many = made_up(300)
    index = Index.build(elmo, [["same"] * 300, *many], tmp_path / "index", graph_from=1)
    vector = embed_word(elmo, "same", ["same"] * 300).vector
    found = index.search(vector, 5, exclude=["same"] * 300)
    assert len(found) == 5
    exact = index.search(vector, 5, exclude=["same"] * 300, exact=True)
    assert found[0].similarity == pytest.approx(exact[0].similarity, abs=0.01)
    assert all(n.words != ["same"] * 300 for n in found)
    assert len(index.search(vector, 1000)) == len({tuple(words) for words in many}) + 1


class Breaks:
    """A corpus whose reader is interrupted."""

    def __init__(self, sentences: list[list[str]], after: int) -> None:
        self.sentences, self.after = sentences, after

    def __iter__(self) -> Iterator[list[str]]:
        for k, words in enumerate(self.sentences):
            if k == self.after:
                raise KeyboardInterrupt
            yield words


def test_an_interrupted_index_goes_on(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "CHECKPOINT_WORDS", 50)
    monkeypatch.setattr("elmokit.elmo.WINDOW_WORDS", 30)
    corpus = made_up(60)
    whole = Index.build(elmo, corpus, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        Index.build(elmo, Breaks(corpus, 40), tmp_path / "parts")
    assert not (tmp_path / "parts").exists()
    stage = tmp_path / ".parts.partial"
    (stage / "vectors.f16").open("ab").write(b"half a sentence")
    done = json.loads((stage / "checkpoint.json").read_bytes())["sentences"]
    assert 5 < done < 40
    embedded = []
    items = Elmo.items

    def counted(self: Elmo, sentences: object, layers: object) -> object:
        for each in items(self, sentences, layers):  # type: ignore[arg-type]
            embedded.append(each[0])
            yield each

    monkeypatch.setattr(Elmo, "items", counted)
    Index.build(elmo, corpus, tmp_path / "parts")
    assert embedded == corpus[done:], "nothing is embedded twice"
    assert not stage.exists()
    assert files(tmp_path / "parts") == files(whole.directory)


def test_an_interruption_while_linking(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("usearch")
    monkeypatch.setattr(graph, "BLOCK_SIZE", 50)
    monkeypatch.setattr(graph, "SAVE_INTERVAL", 100)
    added = []

    def stop(what: str, done: int, of: int | None) -> None:
        if what == graph.BUILDING:
            added.append(done)
            if done == 150:
                raise KeyboardInterrupt

    corpus = made_up(60)
    with pytest.raises(KeyboardInterrupt):
        Index.build(elmo, corpus, tmp_path / "index", graph_from=1, callback=stop)
    assert not (tmp_path / "index").exists()
    added.clear()
    monkeypatch.setattr(Elmo, "_embed_windows", None)  # nothing is left to embed
    monkeypatch.setattr(Elmo, "items", lambda self, text, layers: iter(list(text)))
    index = Index.build(
        elmo, corpus, tmp_path / "index", graph_from=1, callback=lambda *what: added.append(what)
    )
    linked = [done for what, done, _ in added if what == graph.BUILDING]
    assert linked[0] == 150, "it goes on from the 100 that were saved"
    assert index.recall == 1


def test_ctrl_c_stays_an_interruption() -> None:
    class Stopped:
        def __init__(self, message: str) -> None:
            self.message = message

        def add(self, *_: object, threads: int) -> None:
            raise RuntimeError(self.message)

    keys, vectors = np.zeros(1, np.uint64), np.zeros((1, 2), np.int8)
    with pytest.raises(KeyboardInterrupt):
        graph._add(Stopped("Operation has been terminated"), keys, vectors)
    with pytest.raises(RuntimeError, match="memory"):
        graph._add(Stopped("out of memory"), keys, vectors)


def test_another_text_starts_over(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "CHECKPOINT_WORDS", 1)
    monkeypatch.setattr("elmokit.elmo.WINDOW_WORDS", 5)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            Index.build(elmo, Breaks(made_up(10), 8), tmp_path / "index")
    with pytest.raises(InputError, match="another text"):
        Index.build(elmo, iter(CORPUS), tmp_path / "index")
    with pytest.raises(KeyboardInterrupt):
        Index.build(elmo, Breaks(made_up(10), 8), tmp_path / "index")
    index = Index.build(elmo, CORPUS, tmp_path / "index")
    again = Index.build(elmo, CORPUS, tmp_path / "again")
    assert files(index.directory) == files(again.directory)


def test_without_usearch(elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch")
    corpus = made_up(200)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "usearch", None)
        index = Index.build(elmo, corpus, tmp_path / "index", graph_from=1)
        assert index.recall is None and "elmokit[analyses]" in index.exact_reason
        vector = embed_word(elmo, corpus[0][0], corpus[0]).vector
        exact = index.search(vector, 3)
        assert exact[0].words == corpus[0]
        with pytest.raises(MissingExtra, match=r"elmokit\[analyses\]"):
            graph.build_graph(tmp_path, index.vectors_ND, lambda *what: None)
    linked = indexing.add_graph(index, lambda *what: None)
    assert linked.recall is not None and linked.search(vector, 3) == exact
    assert indexing.add_graph(linked, lambda *what: None) is linked
    monkeypatch.setitem(sys.modules, "usearch", None)
    assert Index.open(index.directory).search(vector, 3) == exact


def test_layer_0_is_searched_exactly_and_ties_follow_the_text(elmo: Elmo, tmp_path: Path) -> None:
    corpus = [["x", "same"], *made_up(100), ["same", "y"], ["z", "same"]]
    index = Index.build(elmo, corpus, tmp_path / "index", layer=0, graph_from=1)
    assert index.recall is None and "equal in layer 0" in index.exact_reason
    vector = embed_word(elmo, "same", ["same"], 0).vector
    found = index.search(vector, 3)
    assert [n.words for n in found] == [["x", "same"], ["same", "y"], ["z", "same"]]
    assert len({n.similarity for n in found}) == 1


def test_words_by_their_characters(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, ["abcd abce zzzzzz Abcd ABCD q"], tmp_path / "index")
    alone = elmo.embed([["abcd"]], 0)[0][0]
    found = index.nearest_words(alone, "abcd", 10)
    assert {word for word, _ in found} == {"abce", "zzzzzz", "q"}
    expected = {word: elmo.embed([[word]], 0)[0][0] for word, _ in found}
    for word, cosine in found:
        right = alone @ expected[word] / np.linalg.norm(alone) / np.linalg.norm(expected[word])
        assert cosine == pytest.approx(right, abs=2e-3)
    assert [c for _, c in found] == sorted((c for _, c in found), reverse=True)


def test_what_it_says_about_itself(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "index", max_words=7, source={"a": 1})
    manifest = index.manifest
    assert (manifest["words"], manifest["sentences"], manifest["forms"]) == (11, 2, 9)
    assert manifest["layer"] == 2 and manifest["source"] == {"a": 1}
    assert manifest["model"] == elmo.bilm.fingerprint
    assert "small" in index.exact_reason
    mixed = Index.build(elmo, CORPUS, tmp_path / "mix", layer="mix")
    right = elmo.embed(CORPUS[:1])[0][1]
    np.testing.assert_allclose(
        mixed.vectors_ND[1].astype(np.float32), right / np.linalg.norm(right), atol=1e-3
    )


def test_damage(elmo: Elmo, tmp_path: Path) -> None:
    place = Index.build(elmo, CORPUS, tmp_path / "index").directory
    with pytest.raises(InputError, match="no index in"):
        Index.open(tmp_path / "nowhere")

    def damaged(name: str, content: bytes | None) -> Path:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
        (copy / name).unlink()
        if content is not None:
            (copy / name).write_bytes(content)
        return copy

    manifest = json.loads((place / MANIFEST).read_bytes())
    newer = json.dumps({**manifest, "version": 99}).encode()
    vectors = (place / "vectors.f16").read_bytes()
    for name, content, message in [
        (MANIFEST, b"{", "not that of an index"),
        (MANIFEST, b'{"format": "something"}', "not that of an index"),
        (MANIFEST, newer, "another version"),
        ("vectors.f16", vectors[:-1], "instead of"),
        ("vectors.f16", None, "missing"),
        ("forms.txt", b"one\ntwo\n", "the checksum of forms.txt differs"),
    ]:
        with pytest.raises(FormatError, match=message):
            Index.open(damaged(name, content))


def test_what_cannot_be_indexed(elmo: Elmo, bilm, tmp_path: Path) -> None:
    for corpus in ([], [""], [[]]):
        with pytest.raises(InputError, match="no words"):
            Index.build(elmo, corpus, tmp_path / "index")
    with pytest.raises(InputError, match="line break"):
        Index.build(elmo, [["a", "b\nc"]], tmp_path / "index")
    with pytest.raises(InputError, match="'all'"):
        Index.build(elmo, CORPUS, tmp_path / "index", layer="all")
    with pytest.raises(InputError, match="carry"):
        Index.build(Elmo(bilm, state="carry"), CORPUS, tmp_path / "index")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("precious")
    with pytest.raises(FormatError, match="in the way"):
        Index.build(elmo, CORPUS, tmp_path / "full")
    assert (tmp_path / "full" / "mine.txt").read_text() == "precious"
    Index.build(elmo, CORPUS, tmp_path / "index")
    with pytest.raises(InputError, match="already"):
        Index.build(elmo, CORPUS, tmp_path / "index")
    assert not list(tmp_path.glob(".*")), "no junk is left behind"
