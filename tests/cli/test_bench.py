"""`elmo bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo, Limits, roofline
from elmokit.bench import SCENARIOS
from elmokit.engine.work import character_weights, input_weights, step_weights

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


def test_limits_alone(elmo_command) -> None:
    result = elmo_command("bench", "--limits", "--rounds", 1, "--threads", 1)
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    limits = figures["limits"]
    assert figures["model"] is None and limits["threads"] == 1
    assert limits["flops"]["float32"] > 0 and limits["flops"]["int8"] > 0
    assert len(limits["reads"]) == 7 and all(value > 0 for value in limits["reads"].values())
    assert "products in bfloat16" in result.out and "reads of 256 MiB" in result.out


def test_every_figure_with_its_percentage(elmo_command) -> None:
    arguments = ("--limits", "--rounds", 1, "--sentences", 40, "--dtype", "bfloat16")
    result = elmo_command("bench", MODEL, *arguments)
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    assert list(figures["percent"]) == list(figures["roofline"]) == list(SCENARIOS)
    for scenario, unit in SCENARIOS.items():
        value, limit = figures[scenario], figures["roofline"][scenario]
        share = limit / value if unit == "ms" else value / limit
        assert figures["percent"][scenario] == pytest.approx(100 * share, rel=0.05, abs=0.1)
        line = next(line for line in result.out.splitlines() if line.startswith(scenario))
        assert "words/s" in line and "% of the limit" in line


def test_limits_are_those_of_the_cpu(elmo_command) -> None:
    result = elmo_command("bench", MODEL, "--limits", "--device", "cpu-torch")
    assert result.code == 2 and "--limits measures the CPU" in result.err


def test_the_roofline_counts_every_call() -> None:
    """Twice the sentences in one call: twice the work, except for words that are known."""
    elmo = Elmo.load(MODEL)
    flops = {"float32": 1e9, "bfloat16": None, "int8": 1e9}
    limits = Limits(1, flops, dict.fromkeys(flops, "portable"), {1: 1e15})
    sentences = [[f"word{i}" for i in range(7)] for _ in range(5)]
    values = roofline(elmo, limits, sentences)
    lengths, layers = [9] * 5, 2 * elmo.config.lstm.layers
    weights = layers * (input_weights(elmo.config) + step_weights(elmo.config))
    flop = 2 * (sum(lengths) * weights + 9 * character_weights(elmo.config))
    assert values["natural order, one call"] == pytest.approx(35 / (flop / 1e9))
