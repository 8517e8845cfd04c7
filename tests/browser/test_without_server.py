"""The page without a server: the model in the browser gives what the engine gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.browser.conftest import READY, VIEWS

from elmokit import Elmo
from elmokit.bilm.mix import Mix
from elmokit.serve.corpus_search import find_corpus_neighbors
from elmokit.serve.guesses import guess_word
from elmokit.serve.network_trace import trace_word
from elmokit.serve.sentences import sample_sentences

pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright; see .ci/parts/browser"
)

SENTENCES = (
    "She went to the bank .",
    "Mr. Smith didn't pay $3,500 in the U.S. today, he said.",
    "“Can't you?” she asked (twice).",
    "It's John's well-known dog — isn't it?",
    "He cannot go... I wanna stay!",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft naïve",
)
PLACE = "The doctor told the patient to stay in bed ."


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load()


@pytest.fixture(scope="module")
def static_page(browser: Any, static_address: str) -> Iterator[Any]:
    page = browser.new_page()
    page.set_default_timeout(120_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{static_address}/")
    page.wait_for_selector(READY)
    page.evaluate(
        """async () => {
            const { BrowserSource } = await import('./page/browser/source.js');
            window.source = await BrowserSource.open();
        }"""
    )
    yield page
    page.close()
    assert not problems


def test_vectors_equal_the_engine(static_page: Any, elmo: Elmo) -> None:
    ask = """async (words) => [...(await source.layers('', { words })).layers]"""
    for text in SENTENCES:
        words = elmo.tokenize(text)
        expected = elmo.embed([words], "all")[0]
        found = np.array(static_page.evaluate(ask, words), np.float32).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_words_are_split_alike(static_page: Any, elmo: Elmo) -> None:
    texts = [*SENTENCES, *(sentence.text for sentence in sample_sentences())]
    ask = """async (texts) => {
        const { tokenize } = await import('./page/browser/tokenizer.js');
        return texts.map(tokenize);
    }"""
    assert static_page.evaluate(ask, texts) == [elmo.tokenize(text) for text in texts]


def test_guesses_equal_the_library(static_page: Any, elmo: Elmo) -> None:
    words = PLACE.split()
    expected = guess_word(elmo, words, 4, ["story", "qqq"], 12)
    found = static_page.evaluate("(words) => source.guess('', words, 4, ['story', 'qqq'])", words)
    assert found["words"] == expected["words"]
    for name in ("forward", "backward", "both"):
        assert found[name]["ranks"] == expected[name]["ranks"]
        assert [word for word, _ in found[name]["best"]] == [w for w, _ in expected[name]["best"]]
        assert found[name]["probabilities"] == pytest.approx(expected[name]["probabilities"], 1e-3)


def test_steps_equal_the_library(static_page: Any, elmo: Elmo) -> None:
    words = PLACE.split()
    ask = """async ([words, position]) => {
        const { header, arrays } = await source.trace('', words, position);
        const plain = Object.entries(arrays).map(([name, values]) => [name, [...values]]);
        return [header, Object.fromEntries(plain)];
    }"""
    for position in (0, len(words) - 1):
        fields, arrays = trace_word(elmo, words, position)
        header, found = static_page.evaluate(ask, [words, position])
        assert header == fields
        assert found.keys() == arrays.keys()
        for name, expected in arrays.items():
            np.testing.assert_allclose(found[name], expected.ravel(), atol=1e-5, err_msg=name)


def test_neighbors_equal_the_library(static_page: Any, elmo: Elmo) -> None:
    words = PLACE.split()
    expected = find_corpus_neighbors(elmo, words, 4, Mix((0, 1, 0)), 8)
    ask = "(words) => source.neighbors('', words, 4, { mix: [0, 1, 0], number: 8 })"
    found = static_page.evaluate(ask, words)
    for name in ("words", "position"):
        assert [use[name] for use in found["context"]] == [u[name] for u in expected["context"]]
    assert [word for word, _ in found["static"]] == [word for word, _ in expected["static"]]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_works(browser: Any, static_address: str, view: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(120_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{static_address}/#{view}")
    page.wait_for_selector(f'body[data-ready="{view}"]')
    if view == "tasks":
        assert "Task models need a server" in page.inner_text(".card")
    else:
        page.wait_for_selector("figure")
        assert not page.locator('[role="alert"]:visible').count()
    page.close()
    assert not problems
