"""The word and its sentence in one vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config

import elmokit
from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.context import pool_context, standardize
from elmokit.probe.neighbors.index import Index
from elmokit.probe.neighbors.measure import find_neighbors
from elmokit.probe.neighbors.word_use import embed_word
from elmokit.probe.report_page import render_page
from elmokit.probe.senses.corpus import SenseUse
from elmokit.probe.senses.inventory import use_vector
from elmokit.probe.similarity.measure import pair_cosines
from elmokit.probe.similarity.pairs import ContextPair, WordInContext

CORPUS = [
    "the bank lends money".split(),
    "a bank of the river".split(),
    "we rest on a bank".split(),
]


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo(random_bilm(small_config()), threads=1)


def test_standardized() -> None:
    found = standardize(np.array([[1.0, 2.0, 6.0], [5.0, 5.0, 5.0]]))
    assert np.allclose(found[0].mean(), 0) and np.allclose(found[0].std(), 1)
    assert (found[1] == 0).all()


def test_the_cosine_is_the_mean_of_two_correlations() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(2, 3, (2, 4, 7))
    a, b = (pool_context(each[1], each, "sentence") for each in (first, second))
    assert a.shape == (14,)
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    words = np.corrcoef(first[1], second[1])[0, 1]
    sentences = np.corrcoef(first.mean(0), second.mean(0))[0, 1]
    assert np.isclose(cosine, (words + sentences) / 2)
    assert pool_context(first[1], first, "word") is not None
    assert (pool_context(first[1], first, "word") == first[1]).all()


def test_uses_of_senses_and_pairs(elmo: Elmo) -> None:
    vectors_LTD = elmo.embed([CORPUS[0]], "all")[0]
    use = SenseUse(1, 2, "bank", "n", ("bank%1",))
    pooled_LD = use_vector(use, vectors_LTD, "sentence")
    assert pooled_LD.shape == (elmo.layers, 2 * elmo.dim)
    assert np.allclose(pooled_LD[1, : elmo.dim], standardize(vectors_LTD[1, 1]), atol=1e-5)
    assert np.allclose(pooled_LD[1, elmo.dim :], standardize(vectors_LTD[1].mean(0)), atol=1e-5)
    other_LD = use_vector(use, elmo.embed([CORPUS[1]], "all")[0], "sentence")
    pair = ContextPair(WordInContext(CORPUS[0], 1, 2), WordInContext(CORPUS[1], 1, 2), True)
    cosines = pair_cosines(elmo, [pair], context="sentence")[:-1, 0]
    norms = np.linalg.norm(pooled_LD, axis=1) * np.linalg.norm(other_LD, axis=1)
    assert np.allclose(cosines, (pooled_LD * other_LD).sum(1) / norms, atol=1e-5)
    assert not np.allclose(cosines, pair_cosines(elmo, [pair])[:-1, 0], atol=1e-3)


def test_an_index_with_context(elmo: Elmo, tmp_path: Path) -> None:
    index = Index.build(elmo, CORPUS, tmp_path / "pooled", context="sentence")
    assert index.context == Index.open(tmp_path / "pooled").context == "sentence"
    assert index.vectors_ND.shape == (len(index), 2 * elmo.dim)
    assert index.characters_VD.shape[1] == elmo.dim
    use = embed_word(elmo, "bank", CORPUS[1], context="sentence")
    nearest = index.search(use.vector, 3, word="bank")
    assert list(nearest[0].words) == CORPUS[1] and nearest[0].similarity > 0.999
    found = find_neighbors(elmo, "bank", [CORPUS[0]], index, number=2, static_vectors=None)
    assert found["signature"]["context"] == "sentence"
    plain = Index.build(elmo, CORPUS, tmp_path / "plain")
    assert plain.context == "word" and "context" not in plain.manifest
    with pytest.raises(InputError, match="numbers"):
        plain.search(use.vector)
    text = tmp_path / "text.txt"
    text.write_text("\n".join(map(" ".join, CORPUS)) + "\n")
    Index.from_files(elmo, text, tmp_path / "files", form="tokenized", context="sentence")
    with pytest.raises(InputError, match="made with context 'sentence'"):
        Index.from_files(elmo, [], tmp_path / "files")


def test_unknown_contexts(elmo: Elmo, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected 'word' or 'sentence'"):
        embed_word(elmo, "bank", CORPUS[0], context="document")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected 'word' or 'sentence'"):
        Index.build(elmo, CORPUS, tmp_path / "index", context="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["wsd", "similarity", "neighbors-play"])
def test_what_is_shown_says_so(name: str, tmp_path: Path) -> None:
    path = Path(elmokit.__file__).parent / "builtin" / "measured" / f"{name}.json"
    plain = results.load_measurement(path)
    pooled = {**plain, "signature": {**plain["signature"], "context": "sentence"}}
    files = [results.save_measurement(each, tmp_path, name)[0].name for each in (plain, pooled)]
    assert files == [f"{name}.json", f"{name}-sentence.json"]
    for each, shown in ((plain, False), (pooled, True)):
        figures = results.render_figures(each)
        assert figures
        assert all(("(word and sentence)" in figure.svg) == shown for figure in figures)
        assert ("(word and sentence)" in render_page("x", [], None, [each])) == shown
        texts = [table.title + table.note for table in results.render_tables(each)]
        assert (
            any("and the mean of its sentence" in t or "word and sentence" in t for t in texts)
            == shown
        )
        if (top := results.headline(each)) is not None:
            assert ("(word and sentence)" in top[1]) == shown


def test_running_text_is_shown(tmp_path: Path) -> None:
    path = Path(elmokit.__file__).parent / "builtin" / "measured" / "wsd.json"
    plain = results.load_measurement(path)
    signature = {**plain["signature"], "state": "carry"}
    carried = {**plain, "signature": signature}
    both = {**plain, "signature": {**signature, "context": "sentence"}}
    files = [results.save_measurement(each, tmp_path)[0].name for each in (plain, carried, both)]
    assert files == ["wsd.json", "wsd-carry.json", "wsd-sentence-carry.json"]
    assert all("(running text)" in figure.svg for figure in results.render_figures(carried))
    page = render_page("x", [], None, [both])
    assert "(word and sentence, running text)" in page
