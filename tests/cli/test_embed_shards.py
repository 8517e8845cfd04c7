"""`elmo embed --shards` and `elmo plan`: what they print, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from tests.conftest import GOLDEN

from elmokit.cli.plan import ASSUMED
from elmokit.vectors import CapacityAssumptions

MODEL = str(GOLDEN / "models" / "plain")


def test_one_machine(elmo_command, text_file: Path, tmp_path: Path) -> None:
    job = tmp_path / "job"
    options = ("--file", text_file, "--out", job, "--reduce", "forms")
    result = elmo_command("embed", "-m", MODEL, *options, "--shards", 4, "--workers", 2)
    assert result.code == 0, result.err
    assert f"{job}: 4 shards finished; 220 words in " in result.out
    assert "MB per worker at most, 2 workers" in result.out
    assert "verified: 4 of 4 shards, each once; 60 sentences, 220 words" in result.out
    assert f"merged: {job}/merged.npz" in result.out
    again = elmo_command("embed", "--out", job, "--workers", 1)
    assert "4 shards finished, 4 of them by earlier runs; 0 words" in again.out


def test_the_tasks_of_an_array(elmo_command, text_file: Path, tmp_path: Path) -> None:
    options = ("-m", MODEL, "--file", text_file, "--out", tmp_path / "job", "--pool", "mean")
    planned = elmo_command("embed", *options, "--shards", 5, "--plan-only")
    assert "5 shards of 1 file" in planned.out
    first = elmo_command("embed", *options, "--shards", 5, "--shard", "0/2")
    assert "3 shards finished" in first.out and "verified" not in first.out
    early = elmo_command("embed", "--out", tmp_path / "job", "--finish")
    assert early.code == 1 and "2 shards are missing: 1, 3; run them with" in early.err
    assert elmo_command("embed", *options, "--shards", 5, "--shard", "1/2").code == 0
    finished = elmo_command("embed", "--out", tmp_path / "job", "--finish", "--merge")
    assert finished.code == 0 and "verified: 5 of 5 shards" in finished.out
    assert (tmp_path / "job" / "merged.npz").exists()


def test_wrong_usage(elmo_command, text_file: Path, tmp_path: Path) -> None:
    job = ("--file", text_file, "--out", tmp_path / "job")
    for options, message in (
        ((*job, "--shard", "5/5"), "sbatch --array=0-4"),
        ((*job, "--shard", "five"), "expected K/N"),
        ((*job, "--workers", 2), "--shards N"),
        (("--shards", 2, "--file", text_file), "require --out DIR"),
        (("--shards", 2, "--out", tmp_path / "job"), "require --file FILE"),
        ((*job, "--shards", 2, "--json"), "--json cannot be combined with shards"),
        ((*job, "--shards", 2, "--reduce", "forms", "--pool", "max"), "leave out --reduce forms"),
    ):
        result = elmo_command("embed", "-m", MODEL, *options)
        assert result.code == 2 and message in result.err, options
    result = elmo_command("embed", "-m", MODEL, *job, "--shards", 2, "--reduce", "uses")
    assert result.code == 1 and "--target WORD" in result.err


def test_plan(elmo_command) -> None:
    options = ("--words", "1e9", "-m", MODEL, "--words-per-second", 1e4, "--efficiency", 1)
    result = elmo_command("plan", *options, "--reduce", "sentence", "--store", "float16")
    assert "28 core-hours, 56 shards" in result.out and "measured" not in result.out
    assert "nobody's offer" in result.out
    dim = 16
    estimate = json.loads(elmo_command("plan", *options, "--store", "int8", "--json").out)
    assert estimate["shards"] == 56
    assert estimate["output_bytes"] == 1e9 * (dim + 4 + 4) + 1e9 / 21 * 28
    sentence = elmo_command("plan", *options, "--reduce", "sentence", "--json")
    assert json.loads(sentence.out)["output_bytes"] == 1e9 / 21 * (4 * dim + 28)
    measured = json.loads(elmo_command("plan", "--words", "1e6", "-m", MODEL, "--json").out)
    assert measured["words_per_second"] > 0
    assert elmo_command("plan", "--words", "0", "-m", MODEL).code == 1


def test_every_assumption_of_plan_is_printed_with_the_option_that_sets_it(elmo_command) -> None:
    given = {
        "--price": "0.5",
        "--storage-price": "10",
        "--months": "3",
        "--efficiency": "0.8",
        "--spot-discount": "0.25",
        "--redone": "0.1",
        "--sentence-words": "17",
        "--word-bytes": "6.5",
        "--forms": "12345",
        "--shard-hours": "2",
        "--cores": "7",
    }
    options = [part for pair in given.items() for part in pair]
    fixed = ("plan", "--words", "3.6e9", "-m", MODEL, "--words-per-second", "1000")
    result = elmo_command(*fixed, *options)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    for option, value in given.items():
        (line,) = [line for line in lines if line.endswith(f"  {option}")]
        assert line.split()[-2].replace(",", "") == value
    assert {field.name for field in fields(CapacityAssumptions)} == set(ASSUMED)
    (cluster,) = [line for line in lines if line.startswith("SLURM")]
    assert cluster.split()[-3:] == ["1,250", "178.6", "625.00"]  # 3.6e9 / 800 / 3600; / 7; * 0.5
    for option, value in (("--price", "-1"), ("--spot-discount", "2"), ("--sentence-words", "0")):
        wrong = elmo_command(*fixed, option, value)
        assert wrong.code == 1 and "expected" in wrong.err
