"""`elmo probe pos` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elmokit.bilm.model import BiLM
from elmokit.cli.probe.pos import command
from elmokit.elmo import Elmo
from elmokit.errors import InputError


def tagged(sentences: int, ends: str = "\n\n") -> str:
    """Sentences of two kinds of words in turn, with a word of both tags."""
    lines = []
    for i in range(sentences):
        lines.append(
            "\n".join(f"{w}\t{w.upper()}" for w in ("a", "b", "a")) + f"\nc\t{'AB'[i % 2]}"
        )
    return ends.join(lines) + "\n"


@pytest.fixture
def call(tmp_path: Path, bilm: BiLM, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("elmokit.probe.tags.linear.FEWEST_STEPS", 20)
    monkeypatch.setenv("COLUMNS", "90")
    Elmo(bilm).save(tmp_path / "model")
    (tmp_path / "train.tsv").write_text(tagged(130))
    (tmp_path / "dev.tsv").write_text(tagged(10) + "\nd\tD\n")

    def run(*more: object) -> Result:
        given = ["--train", tmp_path / "train.tsv", "-m", tmp_path / "model", "--threads", 1]
        given += ["--out", tmp_path / "out", *more]
        return CliRunner().invoke(command, [str(each) for each in given], catch_exceptions=False)

    return run


def test_tables_numbers_and_pictures(call, tmp_path: Path) -> None:
    done = call("--test", tmp_path / "dev.tsv")
    assert done.exit_code == 0
    assert (
        "Tagging accuracy in percent by layer: all words" in done.stdout
        and "tag dev" in done.stdout
    )
    text = " ".join(done.stdout.split())
    assert "1 in dev (tag)" in text and "1 of 41 (dev)" in text
    assert "warning" not in done.stderr
    found = json.loads((tmp_path / "out" / "pos.json").read_text())
    assert found["kind"] == "pos" and found["signature"]["columns"] == ["tag"]
    assert set(found["signature"]["data"]) == {"train", "dev"}
    assert sorted(path.name for path in (tmp_path / "out").glob("*.svg")) == [
        "pos-tag-words.svg",
        "pos-tag.svg",
    ]


def test_the_training_set_is_no_test_set(call, tmp_path: Path) -> None:
    copy = tmp_path / "copy.tsv"
    copy.write_text((tmp_path / "train.tsv").read_text())
    with pytest.warns(UserWarning, match=r"copy\.tsv is the training set"):
        done = call("--test", copy, "--json", "--words", 410)
    found = json.loads(done.stdout)
    assert found["train"]["words"] == 412 and found["signature"]["words"] == 410


def test_several_test_sets_of_the_same_name(call, tmp_path: Path) -> None:
    paths = [tmp_path / name / "test.tsv" for name in ("web", "news")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(tagged(3))
    found = json.loads(call("--test", paths[0], "--test", paths[1], "--json").stdout)
    assert [test["name"] for test in found["tests"]] == ["web/test", "news/test"]
    with pytest.raises(InputError, match="expected different files"):
        call("--test", paths[0], "--test", paths[0])


def test_only_the_tags_of_both(call, tmp_path: Path) -> None:
    """CoNLL-U may lack XPOS in one of the files."""

    def conllu(xpos: bool) -> str:
        rows = tagged(130).replace("\n\n", "\n\t\n").splitlines()
        lines = []
        for row in rows:
            word, tag = row.split("\t")
            cells = ["1", word, "_", tag, tag if xpos else "_", *"_____"]
            lines.append("\t".join(cells) if word else "")
        return "\n".join(lines) + "\n"

    (tmp_path / "train.tsv").write_text(conllu(xpos=True))
    (tmp_path / "dev.conllu").write_text(conllu(xpos=False))
    found = json.loads(call("--test", tmp_path / "dev.conllu", "--json").stdout)
    assert list(found["tests"][0]["columns"]) == ["UPOS"]
