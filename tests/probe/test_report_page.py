"""The page of all measurements of a model."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.probe.test_training import found, run  # noqa: F401  fixtures

from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.probe import report, results, save_measurement
from elmokit.probe.data_label import data_label
from elmokit.probe.report_page import CHAPTERS, COMMANDS, TITLES, render_page
from elmokit.probe.results import Measurement

MEASURED = Path(results.elmokit.__file__).parent / "builtin" / "measured"
OF_TASKS = REPOSITORY / "runs" / "analyses" / "0.1.0"


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


def test_what_came_with_the_model_is_kept_apart(
    elmo: Elmo,
    found: Measurement,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    elmo.save(tmp_path / "mine")

    def similarity(pairs: int) -> Measurement:
        shipped = results.load_measurement(MEASURED / "similarity.json")
        signature = {**shipped["signature"], "model": elmo.bilm.fingerprint, "n": pairs}
        return {**shipped, "signature": signature, "pairs": pairs}

    save_measurement(similarity(2000), tmp_path / "mine" / "measured")
    save_measurement(similarity(2000), tmp_path / "again")
    assert "Measured here" not in report(tmp_path / "mine", directories=[tmp_path / "again"]).html
    save_measurement(similarity(12), tmp_path / "again")
    save_measurement(found)
    page = report(tmp_path / "mine", directories=[tmp_path / "again"])
    parsed(page.html)
    assert [each.get("pairs") for each in page.measurements] == [2000, None, 12]
    shipped, local = page.html.split('id="measured-here"')
    assert "2,000 pairs" in shipped and "12 pairs" not in shipped
    assert "12 pairs" in local and "2,000 pairs" not in local
    assert "of which 1 came with the model and 2 did not" in shipped


def test_every_published_measurement_has_a_label() -> None:
    paths = [*MEASURED.glob("*.json"), *OF_TASKS.glob("*.json")]
    labels = {path.stem: data_label(results.load_measurement(path)) for path in paths}
    assert labels["similarity"].startswith("2,000 pairs; data: pairs 505a6a74, gold ")
    assert labels["layers-ner"].startswith("14,041 training examples, 3 seeds; data: train ")
    assert labels["geometry"].startswith("200,016 words in 8,585 sentences")
    assert labels["wsd"].endswith("more files") and "7,253 test instances" in labels["wsd"]
    assert all(any(c.isdigit() for c in label) for label in labels.values())
