"""The lines that a run notes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from elmokit.errors import FormatError
from elmokit.train.metrics import MetricsLog, read_metrics


def note(directory: Path, step: int, *steps: int, **more: Any) -> None:
    metrics = MetricsLog(directory, step)
    for s in steps:
        metrics.write(s, loss=s / 2, **more)
    metrics.close()


def steps(directory: Path) -> list[int]:
    return [line["step"] for line in read_metrics(directory / "metrics.jsonl")]


def test_noted_and_read(tmp_path: Path) -> None:
    note(tmp_path, 0, 25, 50)
    assert list(read_metrics(tmp_path / "metrics.jsonl")) == [
        {"step": 25, "loss": 12.5},
        {"step": 50, "loss": 25.0},
    ]
    assert list(read_metrics(tmp_path / "none.jsonl")) == []


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    note(tmp_path, 0, 25, 50, 75)
    note(tmp_path, 50, 60)
    assert steps(tmp_path) == [25, 50, 60]
    note(tmp_path, 0, 5)
    assert steps(tmp_path) == [5], "from the beginning"


def test_the_end_of_a_run_that_goes_on_is_none(tmp_path: Path) -> None:
    note(tmp_path, 0, 25, 50)
    note(tmp_path, 50, 50, end=True)
    note(tmp_path, 50, 75)
    assert steps(tmp_path) == [25, 50, 75]


def test_a_line_that_was_cut_off(tmp_path: Path) -> None:
    note(tmp_path, 0, 25, 50)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-4])
    assert steps(tmp_path) == [25]
    note(tmp_path, 25, 50)
    assert steps(tmp_path) == [25, 50]


def test_damaged(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\nno\n{"step": 2}\n')
    with pytest.raises(FormatError, match=r"metrics\.jsonl, line 2 is not JSON: 'no'"):
        MetricsLog(tmp_path, 1)


def test_tensorboard_if_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    told: list[Any] = []

    class SummaryWriter:
        def __init__(self, directory: str, purge_step: int) -> None:
            told.append((Path(directory).name, purge_step))

        def add_scalar(self, *what: Any) -> None:
            told.append(what)

        def close(self) -> None:
            told.append("closed")

    fake = ModuleType("torch.utils.tensorboard")
    fake.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    note(tmp_path, 7, 8, end=True, name="x")
    assert told == [("tensorboard", 8), ("loss", 4.0, 8), "closed"]
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line) == {"step": 8, "loss": 4.0, "end": True, "name": "x"}
