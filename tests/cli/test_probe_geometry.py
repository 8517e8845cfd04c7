"""`elmo probe geometry` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elmokit.bilm.model import BiLM
from elmokit.cli.probe.geometry import command
from elmokit.elmo import Elmo

TEXT = "The cat saw a dog. The dog sat. A cat sat by the dog!\nThe cat and a dog ran.\n"


@pytest.fixture
def call(tmp_path: Path, bilm: BiLM, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    Elmo(bilm).save(tmp_path / "model")
    (tmp_path / "text.txt").write_text(TEXT)

    def run(*given: object) -> Result:
        more = ["-m", tmp_path / "model", "--threads", 1, "--out", tmp_path / "out", "--uses", 2]
        more += ["--corpus", tmp_path / "text.txt"]
        everything = [str(each) for each in (*given, *more)]
        return CliRunner().invoke(command, everything, catch_exceptions=False)

    return run


def test_tables_numbers_and_pictures(call, tmp_path: Path) -> None:
    done = call()
    assert done.exit_code == 0 and "How much vectors depend on context" in done.stdout
    # Nothing is lost in a terminal of the usual width.
    assert "untrained: characters" in done.stdout and "anisotropy" in done.stdout
    found = json.loads((tmp_path / "out" / "geometry.json").read_text())
    assert (found["sentences"], found["words"]) == (4, 24)
    assert (tmp_path / "out" / "geometry.svg").exists()


def test_how_it_is_read(call) -> None:
    running = json.loads(call("--json").stdout)
    spaces = json.loads(call("--json", "--tokenized").stdout)
    assert (spaces["sentences"], spaces["words"]) == (2, 20)
    few = json.loads(call("--json", "--words", 7).stdout)
    assert few["words"] == 10
    hashes = {each["signature"]["data"]["corpus"] for each in (running, spaces, few)}
    assert len(hashes) == 3
    done = call("--lines", "--tokenized")
    assert done.exit_code == 2 and "not both" in done.stderr
