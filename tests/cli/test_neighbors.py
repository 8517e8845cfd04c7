"""`elmo neighbors` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.conftest import small_config

from elmokit.bilm.random import random_bilm
from elmokit.cli.neighbors import command
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.results import load_measurement

TEXT = "The bank of the river is green. A bank lends money! Nothing here.\n\nBank on it.\n"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> tuple[str, str]:
        command.main(
            [*map(str, arguments), "--threads", "1", "--vectors", "none"], standalone_mode=False
        )
        out, err = capsys.readouterr()
        return out, err

    return run


def asked(*more: object) -> list[object]:
    return ["bank", "--in", "My bank lends me money.", *more]


def test_the_table(call, corpus: Path) -> None:
    out, err = call(*asked("--corpus", corpus, "-n", 2))
    assert "My *bank* lends me money ." in out and "characters" in out
    rows = [row for row in out.splitlines() if row.strip().startswith("0.")]
    assert len(rows) == 2 and "bank  lends money !" in rows[0]
    assert "index: " in err and "numbers: " in err and "ms" in err
    assert not list((corpus.parent / "cache" / "indexes").glob(".*"))


def test_the_second_time_nothing_is_indexed(call, corpus: Path, monkeypatch) -> None:
    first, _ = call(*asked("--corpus", corpus, "--json"))
    monkeypatch.setattr("elmokit.probe.neighbors.index.Index.build", None)
    again, err = call(*asked("--corpus", corpus, "--json"))
    assert json.loads(again) == json.loads(first) and "index: " not in err
    for other in (["--words", 5], ["--lines"], ["--layer", 1], ["--layer", "mix"]):
        with pytest.raises(TypeError):
            call(*asked("--corpus", corpus, *other))
    corpus.write_text(TEXT + "More of it.\n")
    with pytest.raises(TypeError):
        call(*asked("--corpus", corpus))


def test_the_numbers(call, corpus: Path, tmp_path: Path) -> None:
    out, _ = call(
        *asked("--corpus", corpus, "--corpus", corpus, "--json", "--same-word", "--out"),
        tmp_path / "out",
        "--in",
        "The green bank.",
    )
    found = json.loads(out)
    assert found["kind"] == "neighbors" and found["same_word"]
    assert len(found["questions"]) == 2
    for question in found["questions"]:
        near = [each["words"][each["place"]].lower() for each in question["neighbors"]]
        assert near == ["bank"] * 3
    assert found == load_measurement(tmp_path / "out" / "neighbors-bank.json")
    assert (tmp_path / "out" / "neighbors-bank.svg").read_text().startswith("<svg")
    assert list(found["signature"]["data"]) == ["corpus", "corpus 2"]
    assert found["corpus"]["sentences"] == 8, "two files are one text"


def test_an_index_of_ones_own(call, corpus: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    with pytest.raises(InputError, match="give --corpus"):
        call(*asked("--index", place))
    first, _ = call(*asked("--index", place, "--corpus", corpus, "--json"))
    again, _ = call(*asked("--index", place, "--json"))
    assert json.loads(again) == json.loads(first)
    with pytest.raises(InputError, match="another layer"):
        call(*asked("--index", place, "--layer", 1))
    corpus.write_text("Another text.\n")
    with pytest.raises(InputError, match="another data"):
        call(*asked("--index", place, "--corpus", corpus))
    Elmo(random_bilm(small_config())).save(tmp_path / "model")
    with pytest.raises(InputError, match="another model"):
        call(*asked("--index", place, "-m", tmp_path / "model"))


def test_a_word_that_stands_there_twice(call, corpus: Path) -> None:
    twice = ["bank", "--in", "A bank is a bank.", "--corpus", corpus, "--json"]
    out, err = call(*twice)
    assert json.loads(out)["questions"][0]["place"] == 1 and "--at N" in err
    out, err = call(*twice, "--at", 2)
    assert json.loads(out)["questions"][0]["place"] == 4 and "--at N" not in err
    with pytest.raises(InputError, match="2 times"):
        call(*twice, "--at", 3)


def test_a_word_that_is_not_there(call, corpus: Path) -> None:
    with pytest.raises(InputError, match=r"'shore' is not in the sentence.*My bank \."):
        call("shore", "--in", "My bank.", "--corpus", corpus)
    assert not (corpus.parent / "cache").exists(), "said before the corpus is read"


def test_wrong_use(call, corpus: Path) -> None:
    for arguments in (
        ["bank", "--corpus", corpus],
        asked(),
        asked("--corpus", corpus, "--layer", "best"),
        asked("--corpus", corpus, "--lines", "--tokenized"),
    ):
        with pytest.raises(click.UsageError):
            call(*arguments)
    with pytest.raises(InputError, match="stdin"):
        call(*asked("--corpus", "-"))
    with pytest.raises(InputError, match="this model has 3"):
        call(*asked("--corpus", corpus, "--layer", 3))


def test_static_vectors_of_a_file(corpus: Path, tmp_path: Path, capsys) -> None:
    vectors = tmp_path / "mine.txt"
    vectors.write_text("bank 1 0\nmoney 1 1\nriver 0 1\n")
    arguments = [*asked("--corpus", corpus, "--json", "--vectors", vectors), "--threads", 1]
    command.main([str(each) for each in arguments], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert [word for word, _ in found["static"]["words"]] == ["money", "river"]


def test_it_needs_neither_torch_nor_usearch(corpus: Path) -> None:
    code = f"""
import sys
sys.modules["torch"] = sys.modules["usearch"] = None      # importing them raises ImportError
from elmokit.cli.neighbors import command
command.main({[str(each) for each in asked("--corpus", corpus, "--json")]!r}, standalone_mode=False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["exact"]
