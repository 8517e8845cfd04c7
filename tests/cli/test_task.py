"""`elmo task` as a user meets it."""

from __future__ import annotations

import gc
import json
import os
import signal
from pathlib import Path

import pytest
from tests.tasks import toy

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.cli.task import COMMANDS

TEXT = "Dr. Ada in Paris ."


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    train, dev = toy.files(tmp_path)
    sizes = [part for name, value in toy.SIZES.items() for part in ("--size", f"{name}={value}")]
    made = f"--train {train} --dev {dev} --vectors {toy.vectors_file(tmp_path)} --batch 4"
    return [*made.split(), *sizes, "--rate", "0.02", "--elmo", str(toy.model(tmp_path))]


@pytest.fixture
def trained(elmo_command, arguments: list[str], tmp_path: Path) -> Path:
    done = elmo_command("task", "train", "ner", *arguments, "--epochs", 3, "--out", tmp_path / "m")
    assert done.code == 0, done.err
    return tmp_path / "m"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(elmo_command, name: str) -> None:
    result = elmo_command("task", name, "--help")
    assert result.code == 0 and f"elmo task {name} " in result.out
    assert name in elmo_command("task", "--help").out


def test_train_eval_predict(elmo_command, trained: Path, tmp_path: Path) -> None:
    scored = elmo_command("task", "eval", trained, tmp_path / "dev.conll", "--json")
    about = json.loads((trained / "task.json").read_text())
    assert json.loads(scored.out)["scores"]["f1"] == pytest.approx(about["scores"]["f1"])
    assert about["scores"]["f1"] > 90
    shown = elmo_command("task", "predict", trained, TEXT)
    assert "[Ada PER] in [Paris LOC]" in shown.out
    told = elmo_command("task", "predict", trained, TEXT, TEXT, "--json")
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert [line["words"] for line in lines] == [TEXT.split()] * 2
    from_stdin = elmo_command("task", "predict", trained, "--json", stdin=f"{TEXT}\n\n".encode())
    assert json.loads(from_stdin.out) == lines[0]


def test_answers_to_a_file(elmo_command, trained: Path, tmp_path: Path) -> None:
    dev, out = tmp_path / "dev.conll", tmp_path / "answers"
    assert elmo_command("task", "predict", trained, "--file", dev, "--out", out).code == 0
    assert out.read_text() == elmo_command("task", "predict", trained, "--file", dev).out
    assert out.read_text().split("\n")[0].split()[0] == dev.read_text().split()[0]
    also = tmp_path / "also"
    assert elmo_command("task", "eval", trained, dev, "--out", also).code == 0
    assert also.read_text() == out.read_text()


def test_a_file_with_other_labels(elmo_command, trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conll"
    other.write_text("Ada B-person\nslept O\n")
    done = elmo_command("task", "eval", trained, other)
    assert done.code == 0 and "share no label" in done.err
    assert "the file has person; the model knows LOC, PER" in done.err
    other.write_text("Ada B-person\nin O\nParis B-LOC\n")
    assert "never predicts them: person (1)" in elmo_command("task", "eval", trained, other).err


def test_running_text(elmo_command, trained: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "raw.txt", tmp_path / "out.jsonl"
    path.write_bytes("\ufeffDr. Ada met Dr. Alan in Paris.\r\nSo it was!\r\n".encode())
    text = path.read_text(encoding="utf-8-sig")
    call = ["task", "predict", trained, "--file", path, "--text"]
    printed = elmo_command(*call)
    assert printed.code == 0, printed.err
    records = [json.loads(line) for line in printed.out.splitlines()]
    found = [text[record["start_char"] : record["end_char"]] for record in records]
    assert found == ["Dr. Ada met Dr. Alan in Paris.", "So it was!"]
    assert records[0]["entities"]
    for entity in records[0]["entities"]:
        assert text[entity["start_char"] : entity["end_char"]] == entity["text"]
        assert 0 < entity["confidence"] <= 1
    assert elmo_command(*call, "--out", out).code == 0 and out.read_text() == printed.out
    shown = elmo_command("task", "predict", trained, "--text", "It was. So Ada slept.")
    assert shown.code == 0 and len(shown.out.splitlines()) == 2


def test_stopped_and_resumed(
    elmo_command,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from elmokit.tasks.display import FitDisplay

    def interrupt(self, progress, batches) -> None:
        if progress.step == 20:
            os.kill(os.getpid(), signal.SIGTERM)  # SIGINT may be ignored here

    call = ["task", "train", "ner", *arguments, "--epochs", 1, "--out", tmp_path / "m"]
    with monkeypatch.context() as patch:
        patch.setattr(FitDisplay, "on_step", interrupt)
        stopped = elmo_command(*call)
    assert stopped.code == 130 and "--resume" in stopped.err
    assert elmo_command(*call).code == 1  # not by accident
    again = elmo_command(*call, "--resume")
    assert again.code == 0 and "epoch 1 of 1" in again.out


def test_compare(elmo_command, arguments: list[str], tmp_path: Path) -> None:
    call = ["task", "compare", "ner", *arguments, "--epochs", 1, "--seeds", 1, "--jobs", 1]
    done = elmo_command(*call, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    assert "baseline" in done.out and "100 %" in done.out and "of 1" in done.out
    numbers = json.loads((tmp_path / "runs/comparison.json").read_text())
    assert numbers["rows"][0]["elmo"]["scores"] and len(numbers["biLM"]) == 64
    assert json.loads(elmo_command(*call, "--out", tmp_path / "runs", "--json").out) == numbers


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["train", "chess", "--train", "a", "--dev", "b", "--out", "c"], 2, "chess"),
        (["train", "ner", "--train", "a", "--dev", "b", "--out", "c"], 1, "no such file"),
        (["train", "ner", "--train", "a", "--dev", "b", "--out", "c", "--resume"], 1, "no run"),
        (["train", "ner", "--train", "a", "--dev", "b", "--out", "c", "--size", "x"], 2, "NAME="),
        (["predict", "nowhere", "text"], 1, "directory of a task model"),
        (["predict", "nowhere", "text", "--file", "f"], 2, "not both"),
        (["predict", "nowhere", "text", "--out", "f"], 2, "--file"),
        (["eval", "nowhere", "f"], 1, "directory of a task model"),
    ],
)
def test_wrong_use(elmo_command, given: list[str], code: int, message: str) -> None:
    result = elmo_command("task", *given)
    assert result.code == code and message in result.err
    assert len(result.err.strip().splitlines()) <= 4 and "Traceback" not in result.err
    assert gc.isenabled()
