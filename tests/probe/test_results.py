"""Measurements as files, and the page of all of them."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.conftest import small_config

from elmokit import Elmo
from elmokit.bilm.random import random_bilm
from elmokit.errors import FormatError, InputError
from elmokit.probe import results
from elmokit.probe.report_page import CHAPTERS, COMMANDS, TITLES, page
from elmokit.probe.results import Json, collect, keep, measurement, read, signature, store
from elmokit.probe.training import NOTES, training

NOTED = [
    {"tokens": 100, "loss": 7.0},
    {"tokens": 100, "forward": 400.0, "backward": 300.0},
    {"tokens": 2_000_000, "loss": 5.0},
    {"tokens": 2_000_000, "forward": 80.0, "backward": 20.0},
]


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_bilm(small_config()))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    place = tmp_path / "run" / NOTES
    place.parent.mkdir(parents=True)
    place.write_text("".join(json.dumps(line) + "\n" for line in NOTED))
    return tmp_path / "run"


@pytest.fixture
def found(elmo: Elmo, run: Path) -> Json:
    return training(elmo, run)


def test_kept_and_read(found: Json, tmp_path: Path) -> None:
    written = keep(found, tmp_path / "out")
    assert [path.name for path in written] == ["training.json", "training.svg"]
    assert read(written[0]) == found
    assert keep(found, tmp_path / "out") == written, "the same measurement has the same place"
    assert not list((tmp_path / "out").glob(".*"))


def test_another_measurement_is_not_overwritten(elmo: Elmo, run: Path, tmp_path: Path) -> None:
    first = keep(training(elmo, run), tmp_path / "out")[0]
    (run / NOTES).write_text(json.dumps(NOTED[1]) + "\n")
    second = keep(training(elmo, run), tmp_path / "out")[0]
    assert first != second and len(read(first)["noted"]) > len(read(second)["noted"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/training.json").write_text("my notes")
    third = keep(training(elmo, run), tmp_path / "mine")[0]
    assert third.name.startswith("training-") and third.parent.name == "mine"
    assert (tmp_path / "mine/training.json").read_text() == "my notes"


def test_the_cache(found: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    fingerprint = found["signature"]["model"]
    path = keep(found)[0]
    assert path.parent == store(fingerprint) and tmp_path / "cache" in path.parents
    (path.parent / "other.json").write_text("{}")
    (path.parent / "worse.json").write_text("no JSON")
    assert collect(fingerprint, [path.parent, tmp_path / "nowhere", path.parent]) == [found]
    assert collect("0" * 64, [path.parent]) == []


def test_the_signature_says_what_determined_it(elmo: Elmo, run: Path) -> None:
    one = signature(elmo, {"run": run / NOTES}, seed=1)
    assert one["model"] == elmo.bilm.fingerprint and one["seed"] == 1
    assert one["data"]["run"] == signature(elmo, {"run": run / NOTES}, seed=2)["data"]["run"]
    first, second = (
        results.identity(measurement("training", signature(elmo, {}, seed=seed))) for seed in (1, 2)
    )
    assert first != second
    moved = measurement("training", {**signature(elmo, {}, seed=1), "elmokit": "9"})
    assert results.identity(moved) == first, "another version is the same measurement"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "elmokit-measurement"}', "\0"])
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FormatError, match="no measurement"):
        read(tmp_path / "x.json")


def test_clear_errors(elmo: Elmo, found: Json, run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.json")
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps({**found, "version": 2}))
    with pytest.raises(FormatError, match="newer"):
        read(newer)
    with pytest.raises(InputError, match="no measurement 'chess'"):
        measurement("chess", {})
    with pytest.raises(InputError, match=NOTES):
        training(elmo, tmp_path)
    (run / NOTES).write_text('{"tokens": 1}\nnonsense\n')
    with pytest.raises(FormatError, match="jsonl:2"):
        training(elmo, run)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make"):
        keep(found, tmp_path / "file" / "below")


def test_training_is_shown(found: Json) -> None:
    (table,) = results.tables(found)
    assert table.rows[-1] == ["last", "2,000,000", "80.0", "20.0"]
    (picture,) = results.pictures(found)
    assert "forward 80" in picture.svg
    assert results.headline(found) == ("40.0", "held-out perplexity after 2 M words")


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
    found = Page()
    found.feed(text)
    assert not found.open
    return found


def test_the_page(found: Json) -> None:
    made = page("A <model>", [("dim", "8 & more")], "# Card\n\nIts *text*.", [found])
    read_back = parsed(made)
    assert read_back.links <= read_back.anchors and "its-card" in read_back.anchors
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
    made = page("x", [], None, [])
    parsed(made)
    assert "nothing measured yet" in made and all(title in made for title in TITLES.values())
