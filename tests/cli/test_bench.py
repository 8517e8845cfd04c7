"""`elmo bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo

MODEL = str(GOLDEN / "models" / "plain")


@pytest.mark.parametrize("source", ["made up", "file"])
def test_bench_ends_with_json(elmo_command, text_file: Path, source: str) -> None:
    more = ("--file", text_file) if source == "file" else ()
    result = elmo_command("bench", MODEL, "--rounds", 1, "--sentences", 40, *more)
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    assert figures["engine"] == Elmo.load(MODEL).engine
    for scenario in ("one sentence of 20 words", "natural order, one call"):
        assert figures[scenario] > 0
        assert any(line.startswith(scenario) for line in result.out.splitlines())


def test_bench_wants_one_model(elmo_command) -> None:
    assert elmo_command("bench").code == 2
    assert elmo_command("bench", MODEL, "--size", "small").code == 2


def test_bench_of_every_size(elmo_command) -> None:
    result = elmo_command("bench", "--size", "tiny", "--rounds", 1, "--sentences", 4)
    assert result.code == 0 and json.loads(result.out.splitlines()[-1])["model"] == "tiny"
    from elmokit.bilm.sizes import SIZES

    assert f"[{'|'.join(SIZES)}]" in elmo_command("bench", "--help").out
