"""The page in Chromium: every view shows what it promises, by mouse, by keyboard and by link."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest
from tests.browser.conftest import VIEWS, OpenPage

from elmokit import Elmo
from elmokit.lm import substitutes

pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright; see .ci/parts/browser"
)


def saved(page: Any, label: str, tmp_path: Path) -> Path:
    """What a button of the current view saves."""
    with page.expect_download() as download:
        page.click(f'button[aria-label="Save as {label}"]')
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


def changed_address(page: Any, part: str) -> None:
    page.wait_for_function("part => decodeURIComponent(location.hash).includes(part)", arg=part)


def test_first_paint_shows_the_title(open_page: OpenPage) -> None:
    page = open_page()
    entries = "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)"
    assert page.evaluate(entries)
    assert page.inner_text("h1") == "A sentence"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(open_page: OpenPage, view: str, width: int) -> None:
    page = open_page(view)
    page.set_viewport_size({"width": width, "height": 844})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_cosines_are_those_of_the_engine(open_page: OpenPage, tmp_path: Path) -> None:
    text = "They play in a play about bees."
    page = open_page(f"sentence?text={quote(text)}&word=1&s=0,1,-1")
    content = json.loads(saved(page, "JSON", tmp_path).read_text())
    elmo = Elmo.load()
    layers_LTD = elmo.embed([text], "all")[0]
    assert content["words"] == elmo.tokenize(text)
    weights = np.exp([0, 1, -1]) / np.exp([0, 1, -1]).sum()
    arrays = [*layers_LTD, np.tensordot(weights, layers_LTD, 1)]
    for found, vectors_TD in zip(content["cosines"].values(), arrays, strict=True):
        unit_TD = vectors_TD / np.linalg.norm(vectors_TD, axis=1, keepdims=True)
        np.testing.assert_allclose(found, unit_TD @ unit_TD.T, atol=2e-5)


def test_the_mix_changes_the_map_at_once(open_page: OpenPage) -> None:
    page = open_page("sentence?text=He left the bank on the left.")
    before = page.inner_html("figure .drawing")
    page.locator(".slider input").nth(2).focus()
    page.keyboard.press("End")
    assert page.inner_html("figure .drawing") != before
    changed_address(page, "s=0,0,4")


def test_words_are_chosen_by_mouse_and_keyboard(open_page: OpenPage) -> None:
    page = open_page("sentence?text=He left the bank.&word=3")
    page.locator(".word").nth(3).focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator('.word[aria-pressed="true"]').inner_text() == "the"
    page.locator(".word").nth(1).hover()
    assert "cosine" in page.locator(".word").nth(0).get_attribute("aria-label")
    page.locator(".word").nth(1).click()
    changed_address(page, "word=1")
    page.wait_for_selector(".found strong")


def test_typing_shows_the_new_words(open_page: OpenPage) -> None:
    page = open_page("sentence")
    page.fill("textarea", "Bees don't play.")
    page.wait_for_function("() => document.querySelectorAll('.word').length === 5")
    assert page.locator(".word").all_inner_texts() == ["Bees", "do", "n't", "play", "."]
    changed_address(page, "text=Bees")


def test_uses_drift_apart(open_page: OpenPage) -> None:
    spread = """() => { const at = [...document.querySelectorAll('.dot')].map(
        (dot) => dot.getAttribute('transform').match(/[-\\d.]+/g).map(Number));
        return Math.max(...at.map(([x]) => x)) - Math.min(...at.map(([x]) => x)); }"""
    page = open_page("uses?word=left&layer=0")
    assert page.evaluate(spread) < 1
    page.locator("#layer").focus()
    page.keyboard.press("End")
    assert page.evaluate(spread) > 100
    assert "same sense for" in page.inner_text(".note")
    page.locator(".dot").nth(5).dispatch_event("click")
    assert page.locator('.use[aria-pressed="true"]').count() == 1
    page.locator(".dot").nth(5).focus()
    page.keyboard.press("ArrowRight")
    changed_address(page, "use=")


def test_play_respects_reduced_motion(open_page: OpenPage) -> None:
    page = open_page("uses?word=bank&layer=0")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Play", exact=False).last.click()
    assert page.locator("#layer").input_value() == "2"


def test_own_sentences(open_page: OpenPage) -> None:
    page = open_page("uses")
    page.get_by_role("button", name="Your own…").click()
    page.get_by_role("textbox", name="Word").fill("spring")
    page.get_by_label("Sentences with it").fill("a: Spring came.\nb: The spring broke.\nNo word.")
    page.get_by_role("button", name="Show").click()
    page.wait_for_function("() => document.querySelectorAll('.dot').length === 2")
    assert "1 sentences lack it" in page.inner_text("h2 >> nth=1")
    page.get_by_role("textbox", name="Word").fill("zebra")
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector('[role="alert"]:visible')


def test_guesses_are_those_of_the_library(open_page: OpenPage, tmp_path: Path) -> None:
    text = "The old king died without a son."
    page = open_page(f"guess?text={quote(text)}&position=2&other=queen")
    page.wait_for_selector("td strong")
    content = json.loads(saved(page, "JSON", tmp_path).read_text())
    elmo = Elmo.load()
    words = elmo.tokenize(text)
    own = substitutes(elmo, [words], 12)[0][2]
    other = substitutes(elmo, [[*words[:2], "queen", *words[3:]]], 12)[0][2]
    for name in ("forward", "backward", "both"):
        expected = [getattr(each, name) for each in (own, other)]
        assert content[name]["ranks"] == [each.rank for each in expected]
        assert content[name]["probabilities"] == pytest.approx(
            [each.probability for each in expected], rel=1e-4
        )
        assert [word for word, _ in content[name]["best"]] == [w for w, _ in expected[0].best]
    page.locator(".word").nth(4).click()
    changed_address(page, "position=4")


def test_neighbors_in_context_and_by_characters(open_page: OpenPage) -> None:
    page = open_page("neighbors")
    page.wait_for_function("() => document.querySelectorAll('.found li').length === 16")
    first = page.locator(".found").nth(0).locator("li").nth(0).inner_text()
    assert "baseman" in first
    assert "plays" in page.inner_text(".static-list")
    page.get_by_role("button", name="bank").click()
    page.wait_for_function(
        "() => document.querySelector('.static-list').innerText.includes('banks')"
    )


def test_tasks(open_page: OpenPage, ner_model: Path | None) -> None:
    page = open_page("tasks")
    if ner_model is None:
        assert "elmo serve --task" in page.inner_text("pre")
        return
    page.locator(".sentence-box").fill("Ada lived in London.")
    page.get_by_role("button", name="Predict").click()
    page.wait_for_function("() => document.querySelector('.tagged')?.innerText.includes('Ada')")
    changed_address(page, "task=ner")


def test_the_network_is_stepped_by_keyboard(open_page: OpenPage) -> None:
    page = open_page("network?text=The river rose.&word=1&step=0")
    page.wait_for_selector(".stages button")
    page.locator(".network").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert page.locator('.stages [aria-current="step"]').inner_text() == "4. Projection: layer 0"
    page.keyboard.press("ArrowRight")
    changed_address(page, "word=2")
    assert "rose" in page.locator('.word[aria-pressed="true"]').inner_text()


@pytest.mark.parametrize("view", ["sentence", "uses", "guess", "network"])
def test_figures_are_saved(open_page: OpenPage, view: str, tmp_path: Path) -> None:
    page = open_page(view)
    page.wait_for_selector("figure svg")
    svg = saved(page, "SVG", tmp_path).read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "var(--" not in svg and "class=" not in svg
    png = saved(page, "PNG", tmp_path).read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 5000
    assert json.loads(saved(page, "JSON", tmp_path).read_text())["model"] == "builtin"


@pytest.mark.parametrize("view", ["sentence", "uses", "guess", "neighbors", "network"])
def test_a_link_shows_the_same_again(open_page: OpenPage, view: str, tmp_path: Path) -> None:
    page = open_page(view)
    page.wait_for_function("() => location.hash.includes('?')")
    page.wait_for_timeout(500)
    address = page.evaluate("location.hash")
    again = open_page(unquote(address[1:]) if "%25" in address else address[1:])
    again.wait_for_timeout(500)
    assert again.evaluate("location.hash") == address
    texts = [saved(each, "JSON", tmp_path).read_text() for each in (page, again)]
    assert texts[0] == texts[1]


def test_the_theme_is_remembered(open_page: OpenPage) -> None:
    page = open_page()
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(color)
    page.locator("#theme").click()
    assert page.evaluate(color) != light
    assert open_page("guess").evaluate(color) != light


def test_the_page_loads_nothing_from_elsewhere(open_page: OpenPage) -> None:
    addresses: list[str] = []
    open_page.context.on("request", lambda request: addresses.append(request.url))
    for view in VIEWS:
        open_page(view)
    assert addresses and all(each.startswith(open_page.address) for each in addresses)
