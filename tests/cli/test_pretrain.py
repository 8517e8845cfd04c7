"""`elmo pretrain` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.toy import SENTENCES, TINY, toy_corpus

from elmokit.bilm.sizes import SIZES
from elmokit.cli import pretrain as cli
from elmokit.cli.pretrain import command, render_results
from elmokit.cli.training_display import describe_report
from elmokit.cli.training_options import suggest_products
from elmokit.elmo import Elmo
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.lm import Perplexity
from elmokit.train.budget import Budget
from elmokit.train.interrupt import TrainingStopped
from elmokit.train.loop import TrainingProgress
from elmokit.train.recipe import RECIPES
from elmokit.train.run import TrainingReport
from elmokit.train.run_plan import RunPlan

OPTIONS = ["--batch", "150", "--warm-up", "5", "--negatives", "10", "--shards", "2"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_corpus(tmp_path_factory.mktemp("toy")).path


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As bilm-tf would have it, with a word of its own."""
    path = tmp_path_factory.mktemp("config") / "options.json"
    path.write_text(json.dumps(TINY.to_options() | {"n_tokens_vocab": 793471}))
    return path


def call(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)], env=environment)


def begun(out: Path) -> RunPlan:
    return RunPlan.read(out / "training")


# -- a run ---------------------------------------------------------------------------------------


def test_a_run_for_a_person(corpus: Path, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    result = call(corpus, "--out", out, "--config", config, "--epochs", 1, *OPTIONS)
    assert result.exit_code == 0, result.output
    assert result.stderr == "", "no bar where nobody looks"
    first, *rest = result.stdout.splitlines()
    rows = dict(line.split(maxsplit=1) for line in rest)
    assert first == str(out)
    assert rows["words"] == "1,215 read (epochs: 1)"
    assert rows["time"].endswith("words/s")
    assert rows["held"].startswith("out  perplexity ")
    assert "forward" in rows["held"]
    assert Path(rows["curve"]).read_text().startswith("<svg")
    for what in (f"embed -m {out}", f"perplexity {out} TEXT", f"convert {out} export"):
        assert f"elmo {what}" in result.stdout
    assert Elmo.load(out).bilm.config == TINY, "what others noted is not taken over"
    assert begun(out).recipe == SENTENCES
    assert begun(out).budget == Budget(epochs=1)


def test_json_and_resume(corpus: Path, config: Path, tmp_path: Path) -> None:
    """The whole command again, with --resume, is accepted; and a budget may be said anew."""
    out = tmp_path / "model"
    asked = [corpus, "--out", out, "--config", config, *OPTIONS, "--json"]
    result = call(*asked, "--tokens", 300)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["model"] == str(out)
    assert facts["steps"] == 3
    assert set(facts["held_out"]) >= {"forward", "backward", "mean", "tokens", "oov", "signature"}
    assert facts["fingerprint"] == Elmo.load(out).bilm.fingerprint
    again = json.loads(call(*asked, "--resume").stdout)
    assert again["tokens"] == facts["tokens"]
    longer = call(corpus, "--out", out, "--resume", "--json", "--epochs", 1)
    assert json.loads(longer.stdout)["epochs"] == 1
    assert begun(out).budget == Budget(epochs=1)


def test_defaults(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def fake(corpus: str, out: str, **how: Any) -> None:
        asked.update(how)

    monkeypatch.setattr("elmokit.train.pretrain", fake)
    monkeypatch.setattr("elmokit.engine.native.usable_processors", lambda: 5)
    out = tmp_path / "out"
    assert call(corpus, "--out", out, "--minutes", 10).exit_code == 0
    assert asked["config"] is None, "the function has the same default"
    assert asked["recipe"] == RECIPES["recommended"].replace(shards=5)
    assert asked["budget"] == Budget(minutes=10)
    assert asked["checkpoint_minutes"] == 5
    call(corpus, "--out", out, "--tokens", 9, "--recipe", "bilm-tf", "--size", "small")
    assert asked["recipe"] == RECIPES["bilm-tf"].replace(shards=4), "lanes come out even"
    assert asked["config"] == SIZES["small"]
    call(corpus, "--out", out, "--tokens", 9, WORLD_SIZE="3")
    assert asked["recipe"].shards == 3
    call(corpus, "--out", out, "--tokens", 9, "--device", "cuda")
    assert (asked["recipe"].shards, asked["device"]) == (1, "cuda")
    options = "--rate .1 --schedule trapezoid --warm-up 3 --dropout .2 --clip 2 --sampler full"
    options += " --text stream --lanes 6 --window 4 --seed 5 --shards 3"
    call(corpus, "--out", out, "--tokens", 9, *options.split())
    changed = {"rate": 0.1, "schedule": "trapezoid", "warm_up": 3, "dropout": 0.2, "clip": 2.0}
    changed |= {"sampler": "full", "text": "stream", "lanes": 6, "window": 4, "seed": 5}
    assert asked["recipe"] == RECIPES["recommended"].replace(**changed, shards=3)  # type: ignore[arg-type]


def test_config_of_a_model(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"format": "elmokit-bilm", "version": 1, **TINY.to_dict()}))
    assert cli._read_architecture(None, str(path)) == TINY
    path.write_text(json.dumps(TINY.to_dict() | {"new": 1}))
    result = call(corpus, "--out", tmp_path / "out", "--tokens", 1, "--config", path)
    assert isinstance(result.exception, ConfigError)
    for damaged in ("{}", "[]", "no"):
        path.write_text(damaged)
        result = call(corpus, "--out", tmp_path / "out", "--tokens", 1, "--config", path)
        assert isinstance(result.exception, FormatError)
        assert "has no architecture" in str(result.exception)


# -- stopping ------------------------------------------------------------------------------------


def report(**changes: Any) -> TrainingReport:
    facts: dict[str, Any] = {
        "progress": TrainingProgress(step=10, tokens=1_234_567, seconds=5.0),
        "spent": 0.25,
        "loss": 4.5678,
        "words_per_second": 9321.4,
        "held_out": None,
        "epochs": 0.5,
    }
    return TrainingReport(**facts | changes)


def test_stopped(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, on_step: Any, **__: Any) -> None:
        on_step(report())
        raise KeyboardInterrupt

    monkeypatch.setattr("elmokit.train.pretrain", stopped)
    out = tmp_path / "model"
    result = call(corpus, "--out", out, "--minutes", 1)
    assert result.exit_code == 130
    assert result.stderr == (
        f"stopped after 1,234,567 words; to continue: elmo pretrain {corpus} --out {out} --resume\n"
    )
    assert call(corpus, "--out", out, "--minutes", 1, RANK="1").stderr in ("", "\nAborted!\n")


def test_stopped_by_a_scheduler(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, on_step: Any, auto_resume: bool, **__: Any) -> None:
        assert auto_resume
        raise TrainingStopped

    monkeypatch.setattr("elmokit.train.pretrain", stopped)
    arguments = [corpus, "--out", tmp_path / "model", "--minutes", 1, "--auto-resume"]
    result = call(*arguments)
    assert result.exit_code == 0
    assert result.stderr.startswith("stopped by a signal, before the first step; to continue")
    quiet = call(*arguments, RANK="1")
    assert quiet.exit_code == 0 and quiet.stderr == ""
    both = call(*arguments, "--resume")
    assert both.exit_code == 2 and "not both" in both.stderr


def test_the_same_command_again(corpus: Path, config: Path, tmp_path: Path) -> None:
    arguments = [corpus, "--out", tmp_path / "model", "--config", config, "--tokens", 300, *OPTIONS]
    assert "perplexity" in call(*arguments, "--auto-resume").stdout
    again = call(*arguments, "--auto-resume")
    assert again.exit_code == 0 and "nothing to do" in again.stderr


# -- what is shown -------------------------------------------------------------------------------


def test_a_report_in_a_line() -> None:
    assert describe_report(report()) == "1.23 M words, 9,321 words/s, loss 4.57"
    held_out = Perplexity(123.44, 119.96, 1, 1, 0)
    assert describe_report(report(held_out=held_out)) == (
        "1.23 M words, 9,321 words/s, loss 4.57, held-out perplexity forward/backward 123.4/120.0"
    )


def test_summary_without_held_out_text() -> None:
    facts = {"model": "m", "held_out": None, "seconds": 10.0, "tokens": 500, "epochs": 2.0}
    shown = render_results(facts | {"curve": "c"})
    assert "held out  no text to evaluate the model on" in shown
    assert "0:00:10, 50 words/s" in shown


def test_lines_without_a_terminal(
    corpus: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmokit.progress.LINE_SECONDS", 0)
    result = call(corpus, "--out", tmp_path / "model", "--config", config, "--epochs", 1, *OPTIONS)
    lines = result.stderr.splitlines()
    assert lines[0] == "opening the corpus"
    assert "held-out" not in lines[1]
    assert lines[-1].startswith("100.0%  1.22 k words")
    assert "held-out perplexity forward/backward" in lines[-1]
    assert "0:00:00 left" in lines[-1]


def test_a_bar_on_a_terminal(
    corpus: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmokit.progress.is_terminal", lambda: True)
    asked = [corpus, "--out", tmp_path / "model", "--config", config, "--epochs", 1, *OPTIONS]
    result = call(*asked, FORCE_COLOR="1", COLUMNS="200")
    assert result.exit_code == 0, result.output
    assert "opening the corpus" in result.stderr
    assert "held-out perplexity" in result.stderr
    assert "loss" not in result.stdout
    assert "words/s" in result.stdout


@pytest.mark.parametrize("isa", ["amx", "avx512_bf16", "avx2"])
def test_faster_products_are_named_where_somebody_looks(
    isa: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmokit.engine.native.kernel_available", lambda: True)
    monkeypatch.setattr("elmokit.engine.native.instruction_set", lambda dtype: isa)
    suggest_products(None, "cpu")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("elmokit.progress.is_terminal", lambda: True)
    for products, device in (("float32", "cpu"), ("bfloat16", "cpu"), (None, "cuda")):
        suggest_products(products, device)
    assert capsys.readouterr().err == ""
    suggest_products(None, "cpu")
    said = capsys.readouterr().err
    assert said == "" if isa == "avx2" else "with --products bfloat16 it would train" in said


# -- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "set how long to train: --minutes, --tokens or --epochs"),
        (["--minutes", "1", "--epochs", "2"], "give --minutes or --epochs"),
        (["--epochs", "1", "--size", "tiny", "--config", "x"], "give --size or --config"),
        (["--epochs", "1", "--lanes", "2"], "--lanes would have no effect"),
        (["--epochs", "1", "--passage", "2"], "--passage would have no effect"),
        (["--epochs", "1", "--text", "passages", "--lanes", "2"], "--lanes would have no effect"),
        (["--epochs", "1", "--text", "stream", "--batch", "2"], "--batch would have no effect"),
        (
            ["--epochs", "1", "--sampler", "full", "--negatives", "9", "--window", "3"],
            "--negatives, --window would have no effect",
        ),
        (["--epochs", "1", "--size", "huge"], "huge"),
    ],
)
def test_wrong_use(corpus: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    result = call(corpus, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--epochs", "0"], InputError),
        (["--tokens", "1", "--rate", "-1"], ConfigError),
        (["--tokens", "1", "--text", "stream", "--lanes", "5", "--shards", "2"], ConfigError),
        (["--resume"], InputError),
    ],
)
def test_refused(corpus: Path, tmp_path: Path, arguments: list[str], error: type) -> None:
    assert isinstance(call(corpus, "--out", tmp_path / "out", *arguments).exception, error)
    assert not (tmp_path / "out").exists()


def test_a_text_is_no_corpus(corpus: Path, tmp_path: Path) -> None:
    text = corpus.parent / "train.txt"
    result = call(text, "--out", tmp_path / "out", "--minutes", 1)
    assert result.exit_code == 2
    assert f"elmo corpus {text} --out CORPUS" in " ".join(result.stderr.split())
    result = call(corpus.parent, "--out", tmp_path / "out", "--minutes", 1)
    assert "a directory without corpus.json" in result.stderr
    result = call(tmp_path / "none", "--out", tmp_path / "out", "--minutes", 1)
    assert isinstance(result.exception, FormatError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "0.1", "--clip", "1"], "--rate cannot change when a run is resumed"),
        (["--recipe", "bilm-tf"], "--recipe cannot change"),
        (["--recipe", "recommended", "--batch", "9"], "--batch, --recipe cannot change"),
        (["--size", "tiny"], "--config, --size cannot change"),
    ],
)
def test_resume_with_other_choices(
    corpus: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "model"
    RunPlan(TINY, SENTENCES, Budget(tokens=9), "of another corpus").write(out / "training")
    result = call(corpus, "--out", out, "--resume", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    same = ["--recipe", "recommended", *OPTIONS]
    result = call(corpus, "--out", out, "--resume", *same)
    assert "another corpus" in str(result.exception), "choices that are the same are none"


def test_sizes() -> None:
    assert set(cli.SIZES) == set(SIZES)


def test_defaults_in_the_help_are_those_of_the_recipes() -> None:
    shown = " ".join(CliRunner().invoke(command, ["--help"], terminal_width=300).stdout.split())
    shown = shown[shown.index("Options:") :]
    ours, theirs = (RECIPES[name].to_dict() for name in ("recommended", "bilm-tf"))
    options = "rate schedule warm_up dropout clip sampler negatives text batch lanes window".split()
    for name in options:
        a, b = (f"{v:g}" if isinstance(v, float) else f"{v}" for v in (ours[name], theirs[name]))
        default = a if a == b else f"{a}; bilm-tf: {b}"
        help_text = shown[shown.index(f"--{name.replace('_', '-')} ") :]
        assert help_text[help_text.index("[default: ") :].startswith(f"[default: {default}]"), name


def test_help_has_examples() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.stdout.count("elmo pretrain ") >= 3
    assert "torchrun" in result.stdout


# -- torchrun ------------------------------------------------------------------------------------


def test_torchrun(corpus: Path, config: Path, tmp_path: Path) -> None:
    """Two processes end in the same model as one, and only the first of them speaks."""
    import torch

    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    asked = [corpus, "--config", config, "--tokens", 700, *OPTIONS]
    assert call(*asked, "--out", tmp_path / "one").exit_code == 0
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*run, "-m", "elmokit", "pretrain", *map(str, asked), "--out", str(tmp_path / "two")],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("held out") == 1
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
