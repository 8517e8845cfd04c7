"""The page of the analyses, from made-up measurements; and the pairs from SemCor."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY

from elmokit.probe.results import load_measurement, make_measurement, save_measurement
from elmokit.probe.senses.corpus import SenseCorpus, SenseSentence, SenseUse

RUNS = REPOSITORY / "runs"


def script(name: str) -> Any:
    """A script as a module, under a name that no other script has."""
    spec = importlib.util.spec_from_file_location(f"analyses_{name}", RUNS / f"analyses/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = script("page")
    signed = {"model": "a" * 64, "data": {"run": "b" * 64}, "elmokit": "1.2.3"}
    noted = [{"tokens": 1000, "forward": 50.0, "backward": 40.0}]
    save_measurement(
        make_measurement("training", signed, noted=noted), tmp_path / "in", "training-tiny"
    )
    (tmp_path / "page.md").write_text("# P\n$training_tiny_table_1\n$training_tiny_pictures\n")
    (tmp_path / "out/analyses").mkdir(parents=True)
    (tmp_path / "out/analyses/old.svg").write_text("no longer shown")
    monkeypatch.setattr(page, "HERE", tmp_path)
    argv = ["page.py", str(tmp_path / "in"), "--out", str(tmp_path / "out/analyses.md")]
    monkeypatch.setattr(sys, "argv", argv)
    page.main()
    made = (tmp_path / "out/analyses.md").read_text()
    assert "| last | 1,000 | 50.0 | 40.0 |" in made
    assert "![Training](analyses/training-tiny.svg)" in made
    assert (tmp_path / "out/analyses/training-tiny.svg").read_text().startswith("<svg")
    assert not (tmp_path / "out/analyses/old.svg").exists()
    assert "| training-tiny | aaaaaaaaaaaa | run bbbbbbbb | 1.2.3 |" in page.signature_table(
        {"training-tiny": load_measurement(tmp_path / "in/training-tiny.json")}
    )
    (tmp_path / "page.md").write_text("$wsd_tables")
    with pytest.raises(SystemExit, match="wsd_tables"):
        page.main()


def _fields() -> list[str]:
    text = (RUNS / "analyses/page.md").read_text(encoding="utf-8")
    return re.findall(r"\$(\w+?)_(?:tables?|pictures?)(?:_\d)?\b", text)


def test_the_page_asks_for_what_the_script_makes() -> None:
    fields = _fields()
    text = (RUNS / "analyses.sh").read_text()
    made = set(re.findall(r"^ *once ([\w-]+) ", text, re.M)) | {"training"}
    made |= {f"{kind}-{task}" for kind, task in re.findall(r"^analysis (\w+) (\w+) ", text, re.M)}
    assert fields and {name.replace("_", "-") for name in fields} <= made


def sentence(form: str, key: str, number: int) -> SenseSentence:
    words = f"This is sentence {number} with {form} .".split()
    return SenseSentence(words, [SenseUse(5, 6, key.split("%")[0], "n", (key,))])


def test_pairs_are_balanced_and_written_alike() -> None:
    uses = [("banks", "bank%1"), ("banks", "bank%2"), ("play", "play%1"), ("plays", "play%1")]
    text = SenseCorpus("s", [sentence(*uses[i % 4], number=i) for i in range(80)])
    found = script("pairs").extract_pairs(text, 6)
    assert len(found) == 6 and sum(same for *_, same in found) == 3
    sentences = [" ".join(words) for _, _, _, _, *both, _ in found for words in both]
    assert len(set(sentences)) == len(sentences), "each is used once"
    for lemma, part, at, there, first, second, same in found:
        assert part == "N" and first[at] == second[there]
        assert same or lemma == "bank"
    assert found == script("pairs").extract_pairs(text, 6), "the same every time"


def test_pairs_of_two_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = script("pairs")
    text = SenseCorpus("s", [sentence("banks", f"bank%{i % 2}", number=i) for i in range(80)])
    document = {" ".join(each.words): i // 40 for i, each in enumerate(text.sentences)}

    def in_one_document(found: list[Any]) -> int:
        return sum(
            document[" ".join(one.first_words)] == document[" ".join(one.second_words)]
            for one in found
        )

    monkeypatch.setattr(pairs, "PAIRS_PER_FORM", 20)
    assert in_one_document(pairs.extract_pairs(text, 20)) > 0
    found = pairs.extract_pairs(text, 20, documents=[i // 40 for i in range(80)])
    assert len(found) >= 10 and in_one_document(found) == 0
