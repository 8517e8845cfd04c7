"""The uses of a word: collected, compared and drawn."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.conftest import GOLDEN, REPOSITORY
from tests.figures.svg import MARKUP, elements, texts

from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.probe import draw_uses
from elmokit.probe.uses.collect import collect_uses
from elmokit.text.files import read_lines

SENTENCES = [
    "I sat by the bank .",
    "Nothing here .",
    "The bank lent the other bank money .",
    ["A", "Bank", MARKUP],
]
SENSES = ["river", "", "money", "money"]


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load(GOLDEN / "models" / "plain")


def test_all_uses_are_collected(elmo: Elmo) -> None:
    collected = collect_uses(elmo, "bank", SENTENCES, SENSES)
    assert [(use.sense, use.position) for use in collected.uses] == [
        ("river", 4),
        ("money", 1),
        ("money", 5),
        ("money", 1),
    ]
    assert collected.without_word == 1
    assert collected.layers_LND.shape == (3, 4, elmo.dim)
    assert np.allclose(np.linalg.norm(collected.layers_LND, axis=-1), 1, atol=1e-5)
    cosines = collected.cosines(2)
    for use, nearest in enumerate(collected.nearest(2)):
        assert nearest != use
        assert cosines[use, nearest] == max(np.delete(cosines[use], use))
    assert len(collect_uses(elmo, "bank", SENTENCES, most=2).uses) == 2


def test_the_count_of_the_same_sense(elmo: Elmo) -> None:
    collected = collect_uses(elmo, "bank", ["A bank .", "A bank .", "My bank !"], ["a", "a", "b"])
    assert collected.same_sense(2) == (2, 3)
    assert collected.same_sense(0) is None, "all uses have the same vector there"
    assert collect_uses(elmo, "bank", ["A bank .", "My bank !"]).same_sense(2) is None


def test_a_panel_per_layer(elmo: Elmo) -> None:
    svg = draw_uses(elmo, "bank", SENTENCES, senses=SENSES)
    dots = [c for c in elements(svg, "circle") if c.get("data-item")]
    assert [dot.get("data-item") for dot in dots] == list("0123") * 3
    assert {"river", "money", "Layer 2: LSTM"} <= set(texts(svg))
    assert "4 uses of “bank”, placed by their vectors" in texts(svg)
    assert "money: A Bank " + MARKUP in [title.text for title in elements(svg, "title")]
    labels = [label for label in texts(svg) if "bank" in label.lower()][1:]
    assert any("I sat by the bank." in label for label in labels)
    colors = {dot.get("class") for dot in dots[:1] + dots[1:4]}
    assert len(colors) == 2
    one = draw_uses(elmo, "bank", SENTENCES, layers=[-1])
    assert "Layer 2: LSTM" in texts(one) and "Layer 1: LSTM" not in texts(one)


def test_the_same_vector_for_all_uses_is_said(elmo: Elmo) -> None:
    svg = draw_uses(elmo, "bank", ["A bank .", "The bank ."], senses=["a", "b"])
    assert any("one vector for all uses" in text for text in texts(svg))
    dots = [c for c in elements(svg, "circle") if c.get("data-item")]
    assert dots[0].get("class") == dots[1].get("class") == "fill2", "no sense hides the other"


def test_a_page_needs_no_other_file(elmo: Elmo) -> None:
    page = draw_uses(elmo, "bank", SENTENCES, senses=SENSES, format="html")
    assert page.startswith("<!doctype html>") and page.count("<tr data-item") == 4
    assert "<strong>bank</strong> lent" in page and "&lt;b&gt;" in page and MARKUP not in page
    assert not re.search(r'(src|href)="', page)
    assert "sat by the <strong>bank</strong>.<" in page, (
        "as running text, without spaces before punctuation"
    )
    assert "<strong>bank</strong> a" in draw_uses(elmo, "bank", ["a\0 bank a"], format="html")


def test_one_use_can_be_drawn(elmo: Elmo) -> None:
    assert "1 use of “bank”" in texts(draw_uses(elmo, "bank", ["A bank"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word": "river"}, "'river' is in none of the 4 sentences"),
        ({"word": "the bank"}, "expected one word, not several"),
        ({"word": " "}, "expected one word"),
        ({"senses": ["a"]}, "there are 1 senses, but more"),
        ({"senses": ["a"] * 5}, "there are 5 senses, but 4 sentences"),
        ({"layers": [3]}, "layer 3 does not exist; this model has 0 to 2"),
        ({"layers": []}, "layers is empty"),
        ({"format": "png"}, "expected 'svg' or 'html'"),
    ],
)
def test_wrong_input(elmo: Elmo, options: dict, message: str) -> None:
    word = options.pop("word", "bank")
    with pytest.raises(InputError, match=message):
        draw_uses(elmo, word, SENTENCES, **options)


@pytest.mark.parametrize(("word", "least"), [("left", (24, 24)), ("bank", (36, 36))])
def test_what_the_pictures_of_the_docs_say(word: str, least: tuple[int, int]) -> None:
    """The built-in model separates the uses of "left", and most of those of "bank"."""
    file = REPOSITORY / "runs" / "builtin" / "senses" / f"{word}.tsv"
    pairs = [line.split("\t") for _, line in read_lines(file) if not line.startswith("#")]
    elmo = Elmo.load()
    collected = collect_uses(elmo, word, [s for _, s in pairs], [sense for sense, _ in pairs])
    assert [collected.same_sense(layer) for layer in (1, 2)] == [(n, len(pairs)) for n in least]
    drawn = (REPOSITORY / "docs" / f"{word}.svg").read_text(encoding="utf-8")
    assert all(f"same sense: {n} of {len(pairs)}" in drawn for n in least)
