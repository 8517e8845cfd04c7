"""The page of all measurements of a model."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.probe.test_training import found, run  # noqa: F401  fixtures

from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.probe import report, results, save_measurement
from elmokit.probe.report_page import CHAPTERS, COMMANDS, TITLES, render_page
from elmokit.probe.results import Measurement


def test_every_kind_has_its_place_in_the_page() -> None:
    placed = [kind for kinds in CHAPTERS.values() for kind in kinds]
    assert sorted(placed) == sorted(results.KINDS) == sorted(TITLES) == sorted(COMMANDS)


class Page(HTMLParser):
    """Every tag is closed in its order, and nothing is loaded from elsewhere."""

    VOID = ("meta", "hr", "br", "rect", "path", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.anchors: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "srcset", "onload")
            if name == "id":
                self.anchors.add(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.links.add((value or "")[1:])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    assert not page.open
    return page


def test_the_page(found: Measurement) -> None:  # noqa: F811
    made = render_page("A <model>", [("dim", "8 & more")], "# Card\n\nIts *text*.", [found])
    read_back = parsed(made)
    assert read_back.links <= read_back.anchors and "model-card" in read_back.anchors
    for text in (
        "A &lt;model&gt;",
        "8 &amp; more",
        "<em>text</em>",
        "40.0",
        "<svg",
        "held-out perplexity",
        found["signature"]["model"],
        "elmo probe wsd",
        "prefers-color-scheme: dark",
        "@media print",
    ):
        assert text in made
    assert "url(" not in made


def test_the_page_of_a_model_that_nobody_measured() -> None:
    made = render_page("x", [], None, [])
    parsed(made)
    assert "nothing measured yet" in made and all(title in made for title in TITLES.values())


def test_the_report_of_a_loaded_model(
    elmo: Elmo,
    found: Measurement,  # noqa: F811
    run: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    empty = report(elmo)
    assert empty.measurements == [] and elmo.bilm.fingerprint in empty.html
    save_measurement(found, tmp_path / "out")
    page = report(elmo, directories=[tmp_path / "out"])
    assert page.measurements == [found] == report(elmo, run=run).measurements
    parsed(page.html)
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(InputError, match="not a directory"):
        report(elmo, directories=[tmp_path / "nowhere"])


def test_the_report_of_a_saved_model(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    elmo.save(tmp_path / "mine")
    (tmp_path / "mine" / "README.md").write_text("A <b>card</b>.")
    page = report(tmp_path / "mine")
    assert page.title == "Mine" and "highway layers" in page.html
    assert str(tmp_path) not in page.html, "a page that is shared tells no path"
    assert "A &lt;b&gt;card&lt;/b&gt;." in page.html
