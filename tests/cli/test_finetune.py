"""`elmo finetune` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN, random_bilm, small_config

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

import click

from elmokit.cli.finetune import command
from elmokit.cli.training_display import TrainingDisplay
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.text.vocabulary import Vocabulary
from elmokit.train import Budget, TextSource, finetune
from elmokit.train import finetuning as train

WORDS = "<S> </S> <UNK> the . gene binds cell".split()
QUICK = ("--tokenized", "--batch", "90", "--rate", "0.03", "--shards", "1")


@pytest.fixture
def model(tmp_path: Path) -> str:
    bilm = random_bilm(small_config())
    random = np.random.default_rng(3)
    softmax = {
        "softmax.weight": random.normal(size=(len(WORDS), 6)).astype(np.float32),
        "softmax.bias": random.normal(size=len(WORDS)).astype(np.float32),
    }
    speaking = replace(bilm, weights={**bilm.weights, **softmax}, vocabulary=Vocabulary(WORDS))
    Elmo(speaking).save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def text(tmp_path: Path) -> str:
    random = np.random.default_rng(0)
    nouns = random.choice(["gene", "cell", "kinase"], (150, 2))
    path = tmp_path / "text.txt"
    path.write_text("".join(f"the {a} binds the {b} .\n" for a, b in nouns))
    return str(path)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> tuple[str, str]:
        command.main([str(argument) for argument in arguments], standalone_mode=False)
        return capsys.readouterr()

    return run


def test_table_and_files(call, model: str, text: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown, said = call(
        *(model, text, "--out", out, "--tokens", 900, "--general", text, "--extend", 5),
        *("--format", "allennlp", *QUICK),
    )
    assert said == ""
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == "perplexity forward backward mean words oov".split()
    assert lines[1][:2] == ["domain", "before"] and lines[2][0] == "after"
    assert lines[3][:2] == ["general", "before"] and lines[4][0] == "after"
    before, after = float(lines[1][4]), float(lines[2][3])
    assert after < before
    assert "9 words" in shown and str(out) in shown, "a word more: kinase"
    assert str(out / "allennlp" / "weights.hdf5") in shown.replace("\n", "")

    native, theirs = Elmo.load(out), Elmo.load(out / "allennlp", state="zero")
    sentence = "the kinase binds .".split()
    native.state = "zero"
    for a, b in zip(native.embed([sentence], "all"), theirs.embed([sentence], "all"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_json(call, model: str, text: str, tmp_path: Path) -> None:
    out, valid = tmp_path / "out", tmp_path / "valid.txt"
    valid.write_text("the gene binds the cell .\n" * 20)
    shown, _ = call(model, text, "-o", out, "--epochs", 1, "--json", "--valid", valid, *QUICK)
    assert shown.count("\n") == 1
    facts = json.loads(shown)
    assert facts["domain"]["after"]["mean"] < facts["domain"]["before"]["mean"]
    assert facts["domain"]["after"]["words"] == 120, "all of --valid"
    assert "general" not in facts and facts["vocabulary"] == len(WORDS)
    assert facts["fingerprint"] == Elmo.load(out).bilm.fingerprint
    assert json.loads((out / "training" / "run.json").read_text())["budget"] == {"epochs": 1.0}


def test_without_softmax(call, text: str, tmp_path: Path) -> None:
    words = tmp_path / "vocab.txt"
    words.write_text("\n".join(WORDS) + "\n")
    for i, arguments in enumerate((("--vocabulary-file", words), ("--vocabulary", 6))):
        out = tmp_path / str(i)
        call(GOLDEN / "models" / "plain", text, "-o", out, "--tokens", 400, *arguments, *QUICK)
        found = Elmo.load(out).bilm.vocabulary
        assert found is not None
        assert [*found] == (WORDS if i == 0 else ["<S>", "</S>", "<UNK>", "the", ".", "binds"])


def test_interrupted(
    call, model: str, text: str, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C leaves the best so far and says how to go on, which then works."""
    out = tmp_path / "out"
    arguments = model, text, "-o", out
    on_step = TrainingDisplay.on_step

    def stop(self: TrainingDisplay, report) -> None:
        on_step(self, report)
        if report.progress.step == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(TrainingDisplay, "on_step", stop)
    with pytest.raises(SystemExit) as stopped:
        call(*arguments, "--tokens", 900, *QUICK)
    assert stopped.value.code == 130
    said = capsys.readouterr().err
    assert "best so far" in said and "--resume" in said
    assert Elmo.load(out).bilm.vocabulary is not None
    monkeypatch.setattr(TrainingDisplay, "on_step", on_step)
    with pytest.raises(click.UsageError, match="started with"):
        call(*arguments, "--resume", "--minutes", 3)
    shown, _ = call(*arguments, "--resume", "--json")
    assert json.loads(shown)["steps"] > 4


def test_stopped_by_a_scheduler(
    call, model: str, text: str, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command line starts, continues and has nothing to do, with exit code 0."""
    arguments = model, text, "-o", tmp_path / "out", "--tokens", 900, *QUICK, "--auto-resume"
    on_step = TrainingDisplay.on_step

    def stop(self: TrainingDisplay, report) -> None:
        on_step(self, report)
        if report.progress.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(TrainingDisplay, "on_step", stop)
    with pytest.raises(SystemExit) as stopped:
        call(*arguments)
    assert stopped.value.code == 0
    assert "step-00000004 is kept" in capsys.readouterr().err
    monkeypatch.setattr(TrainingDisplay, "on_step", on_step)
    with pytest.raises(InputError, match="--rate cannot change"):
        call(*arguments, "--rate", 0.5)
    shown, _ = call(*arguments, "--json")
    calm, _ = call(model, text, "-o", tmp_path / "calm", "--tokens", 900, *QUICK, "--json")
    assert json.loads(shown)["fingerprint"] == json.loads(calm)["fingerprint"]
    assert "nothing to do" in call(*arguments)[0]
    source = TextSource([text])
    how = {"budget": Budget(tokens=900), "auto_resume": True}
    with pytest.raises(InputError, match="cannot change"):
        finetune(model, source, tmp_path / "out", **how)


def test_wrong_use(call, model: str, text: str, tmp_path: Path) -> None:
    arguments = model, text, "-o", tmp_path / "out"
    for more, message in (
        (("--minutes", 1, "--epochs", 2), "--minutes or --epochs"),
        (("--lines", "--tokenized"), "--lines or --tokenized"),
        (("--vocabulary", 9, "--vocabulary-file", text), "not both"),
        (("-", "--general", "-"), "stdin"),
    ):
        with pytest.raises(click.UsageError, match=message):
            call(*arguments, *more)
    with pytest.raises(InputError, match="--extend"):
        call(*arguments, "--vocabulary", 9)
    with pytest.raises(FormatError, match="<UNK>"):
        call(GOLDEN / "models" / "plain", text, "-o", tmp_path / "out", "--vocabulary-file", text)
    with pytest.raises(InputError, match="does not exist"):
        call(model, "nowhere.txt", "-o", tmp_path / "out")
    assert not (tmp_path / "out" / "training" / "run.json").exists()


def test_defaults_are_those_of_the_function() -> None:
    defaults = {option.name: option.default for option in command.params}
    assert defaults["patience"] == train.PATIENCE
    assert defaults["evaluation_words"] == train.EVALUATION_WORDS
    assert train.EPOCHS == 3
    recipe = train.FINETUNE_RECIPE
    assert (recipe.rate, recipe.batch, recipe.dropout) == (0.004, 1120, 0.1), "as in the help"
    large = random_bilm(small_config(cells=5120))
    assert train.default_recipe(large).rate == pytest.approx(train.FINETUNE_RECIPE.rate / 10)
