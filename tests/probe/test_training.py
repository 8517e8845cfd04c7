"""The training curve as a measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmokit import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.probe import results
from elmokit.probe.results import Measurement
from elmokit.probe.training import METRICS_FILE, training_measurement

NOTED = [
    {"tokens": 100, "loss": 7.0},
    {"tokens": 100, "forward": 400.0, "backward": 300.0},
    {"tokens": 2_000_000, "loss": 5.0},
    {"tokens": 2_000_000, "forward": 80.0, "backward": 20.0},
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    metrics = tmp_path / "run" / METRICS_FILE
    metrics.parent.mkdir(parents=True)
    metrics.write_text("".join(json.dumps(line) + "\n" for line in NOTED))
    return tmp_path / "run"


@pytest.fixture
def found(elmo: Elmo, run: Path) -> Measurement:
    return training_measurement(elmo, run)


def test_training_is_shown(found: Measurement) -> None:
    (table,) = results.render_tables(found)
    assert table.rows[-1] == ["last", "2,000,000", "80.0", "20.0"]
    (picture,) = results.render_figures(found)
    assert "forward 80" in picture.svg
    assert results.headline(found) == ("40.0", "held-out perplexity after 2 million words")


def test_clear_errors(elmo: Elmo, run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=METRICS_FILE):
        training_measurement(elmo, tmp_path)
    (run / METRICS_FILE).write_text('{"tokens": 1}\nnonsense\n')
    with pytest.raises(FormatError, match="jsonl:2"):
        training_measurement(elmo, run)
