"""`elmo analyze` as a user meets it, with a task that is learned in a second."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.tasks import toy

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.cli.analyze import COMMANDS
from elmokit.elmo import Elmo
from elmokit.probe import results
from elmokit.probe.tasks import runs
from elmokit.tasks.trials import (
    Outcome,
    TaskFiles,
    Trial,
    TrialCallback,
    TrialUpdate,
    read_outcome,
    run_trial,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    train, dev = toy.files(tmp_path)
    sizes = [part for name, value in toy.SIZES.items() for part in ("--size", f"{name}={value}")]
    made = f"--train {train} --dev {dev} --vectors {toy.vectors_file(tmp_path)} --batch 2"
    rest = f"--rate 0.02 --epochs 1 --seeds 1 --jobs 1 --elmo {toy.model(tmp_path)}"
    return [*made.split(), *rest.split(), *sizes, "--runs", str(tmp_path / "runs")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(elmo_command, name: str) -> None:
    result = elmo_command("analyze", name, "--help")
    assert result.code == 0 and f"elmo analyze {name} " in result.out
    assert name in elmo_command("analyze", "--help").out


def in_this_process(
    trials: Sequence[Trial],
    files: TaskFiles,
    out: str,
    *,
    jobs: int | None,
    callback: TrialCallback,
) -> list[Outcome]:
    """As `run_trials`, whose own test has processes, but without waiting for them to begin."""
    found, data = [], files.fingerprints()
    for trial in trials:
        bilm = None if trial.settings.baseline else Elmo.load(trial.settings.elmo).bilm.fingerprint
        known = read_outcome(Path(out) / trial.name, trial, data, bilm)
        callback(TrialUpdate(trial.name, 1.0, "done before" if known else "done", ended=True))
        found.append(known or run_trial(trial, files, data, Path(out)))
    return found


def test_analyses_share_their_runs(
    elmo_command,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "run_trials", in_this_process)
    out = tmp_path / "out"

    def analyze(kind: str, *more: object) -> tuple[str, set[str]]:
        """What is printed, and which runs were done before."""
        done = elmo_command("analyze", kind, "ner", *arguments, *more, "--out", out)
        assert done.code == 0, done.err
        told = (line.partition(": ") for line in done.err.splitlines())
        return done.out, {name for name, _, text in told if text == "done before"}

    printed, before = analyze("layers")
    assert "last layer only" in printed and "all layers, λ=0.001" in printed and not before
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        f"{name}-0" for name in ("baseline", "elmo-last", "elmo-l2=1", "elmo")
    }
    again, before = analyze("layers")
    assert again == printed and len(before) == 4
    printed, before = analyze("efficiency", "--share", 0.5, "--share", 1)
    assert "50 %" in printed and before == {"baseline-0", "elmo-0"}
    kept = {path.name for path in out.iterdir()}
    assert kept == {
        *("layers-ner.json", "layers-ner.svg", "layers-ner-weights.svg"),
        *("layers-ner.tex", "layers-ner.csv", "layers-ner-2.csv"),
        *("efficiency-ner.json", "efficiency-ner-sizes.svg", "efficiency-ner-epochs.svg"),
        *("efficiency-ner.tex", "efficiency-ner.csv", "efficiency-ner-2.csv"),
    }
    found = results.load_measurement(out / "efficiency-ner.json")
    assert [size["examples"] for size in found["sizes"]] == [30, 60]
    shown = elmo_command("analyze", "weights", tmp_path / "runs", "--json", "--epochs")
    learned = json.loads(shown.out)
    names = [one["name"] for one in learned["systems"]]
    assert names == ["ner", "ner, 50%", "ner, λ=1"] and learned["skipped"]["one layer only"] == 1
    assert learned["signature"]["model"] == found["signature"]["model"]
    compared = tmp_path / "runs" / "elmo-0" / "outcome.json"
    shares = json.loads(compared.read_text())["outcome"]["weights"]["input"]["shares"]
    assert learned["systems"][0]["places"][0]["shares"] == pytest.approx(shares)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["layers", "chess"], 2, "chess"),
        (["place", "ner", "--train", "a", "--dev", "b"], 2, "--runs"),
        (
            ["place", "ner", "--train", "a", "--dev", "b", "--runs", "r", "--place", "both"],
            2,
            "--p",
        ),
        (["layers", "ner", "--train", "a", "--dev", "b", "--runs", "r"], 1, "cannot be read"),
        (
            ["efficiency", "ner", "--train", "a", "--dev", "b", "--runs", "r", "--elmo", "none"],
            1,
            "needs an ELMo",
        ),
        (["weights"], 2, "DIR"),
        (["weights", "nowhere"], 1, "is not a directory"),
    ],
)
def test_wrong_use(elmo_command, given: list[str], code: int, message: str) -> None:
    result = elmo_command("analyze", *given)
    assert result.code == code and message in result.err and "Traceback" not in result.err
