"""`elmo probe similarity` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elmokit.bilm.model import BiLM
from elmokit.cli.probe.similarity import command
from elmokit.elmo import Elmo
from elmokit.probe.results import load_measurement

PAIRS = "".join(f"bank\tN\t1-2\tThe bank x{i} .\tWe saw bank{i % 3} .\n" for i in range(10))
RATINGS = "".join(
    f"{i}\tbank\tn\tbank\tn\tThe <b>bank</b> x{i}\tWe saw a <b>bank</b>\t{i}\t{i}\t{i}\n"
    for i in range(6)
)


@pytest.fixture
def call(tmp_path: Path, bilm: BiLM, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "90")
    Elmo(bilm).save(tmp_path / "model")
    (tmp_path / "dev.data.txt").write_text(PAIRS)
    (tmp_path / "dev.gold.txt").write_text("T\nF\n" * 5)
    (tmp_path / "ratings.txt").write_text(RATINGS)

    def run(*given: object) -> Result:
        more = ["-m", tmp_path / "model", "--threads", 1, "--out", tmp_path / "out"]
        everything = [str(each) for each in (*given, *more)]
        return CliRunner().invoke(command, everything, catch_exceptions=False)

    return run


def test_pairs(call, tmp_path: Path) -> None:
    done = call("--pairs", tmp_path / "dev.data.txt")
    assert done.exit_code == 0 and "Does a word mean the same in two contexts?" in done.stdout
    assert "10 pairs, 5 with the same meaning" in " ".join(done.stdout.split())
    found = load_measurement(tmp_path / "out" / "similarity.json")
    assert set(found["signature"]["data"]) == {"pairs", "gold"}
    assert (tmp_path / "out" / "similarity.svg").exists()
    again = call(
        "--pairs", tmp_path / "dev.data.txt", "--gold", tmp_path / "dev.gold.txt", "--json"
    )
    assert json.loads(again.stdout) == found


def test_pairs_to_train_on(call, tmp_path: Path) -> None:
    pairs = tmp_path / "dev.data.txt"
    done = call("--pairs", pairs, "--train-pairs", pairs, "--json")
    found = json.loads(done.stdout)
    assert found["threshold from"] == 10 and len(found["scores"][0]["thresholds"]) == 1
    assert set(found["signature"]["data"]) == {"pairs", "gold", "train-pairs", "train-gold"}


def test_ratings(call, tmp_path: Path) -> None:
    done = call("--pairs", tmp_path / "ratings.txt")
    said = " ".join(done.stdout.split())
    assert "correlation with human ratings" in said and "against the others: 100.0" in said


def test_gold_for_nothing(call, tmp_path: Path) -> None:
    done = call("--pairs", tmp_path / "dev.data.txt", "--train-gold", tmp_path / "dev.gold.txt")
    assert done.exit_code == 2 and "--train-gold needs --train-pairs" in done.stderr
