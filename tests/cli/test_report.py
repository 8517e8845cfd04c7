"""`elmo report` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.probe.test_report_page import parsed
from tests.probe.test_training import run  # noqa: F401  a fixture


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_the_built_in_model(elmo_command, run: Path, tmp_path: Path) -> None:  # noqa: F811
    done = elmo_command("report", "builtin", "--run", run)
    assert done.code == 0 and "builtin-report.html" in done.out
    made = (tmp_path / "builtin-report.html").read_text(encoding="utf-8")
    parsed(made)
    assert "The built-in model" in made and "2x768_192_512cnn_1xhighway" in made
    assert "Data and license" in made, "its card"
    assert ">40.0<" in made, "the perplexity of the run that was given"


def test_a_place_that_is_none(elmo_command, tmp_path: Path) -> None:
    done = elmo_command("report", "builtin", "--from", tmp_path / "nowhere", "--out", "x.html")
    assert done.code == 1 and "not a directory" in done.err
    assert not (tmp_path / "x.html").exists()
