"""A run on disk: killed, resumed, stopped, refused; and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from safetensors.numpy import load_file, save_file  # noqa: E402
from tests.train.toy import (  # noqa: E402
    SENTENCES,
    STREAM,
    TINY,
    in_process,
    learn_and_die,
    toy_corpus,
    toy_text,
)

from elmokit.bilm.config import LSTMConfig  # noqa: E402
from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import FormatError, InputError, TrainingError  # noqa: E402
from elmokit.json_text import seal  # noqa: E402
from elmokit.nn import kernel  # noqa: E402
from elmokit.train import checkpoint  # noqa: E402
from elmokit.train.budget import Budget  # noqa: E402
from elmokit.train.build import CorpusOptions, build_corpus  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.metrics import read_metrics  # noqa: E402
from elmokit.train.pretraining import pretrain, resume  # noqa: E402
from elmokit.train.recipe import Recipe  # noqa: E402
from elmokit.train.run import TrainingReport  # noqa: E402
from elmokit.train.run_plan import RunPlan  # noqa: E402

BUDGET = Budget(tokens=2300)
"""A little more than two epochs."""
RECIPES = {"recommended": SENTENCES, "bilm-tf": STREAM}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_corpus(tmp_path_factory.mktemp("toy")).path


def plan(recipe: Recipe = SENTENCES, budget: Budget = BUDGET, **more: Any) -> dict[str, Any]:
    return {"config": TINY, "recipe": recipe, "budget": budget, "evaluations": 4} | more


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each recipe that nobody stopped."""
    out = {name: tmp_path_factory.mktemp("undisturbed") / name for name in RECIPES}
    for name, recipe in RECIPES.items():
        pretrain(corpus, out[name], **plan(recipe))
    return out


def model(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


def metrics_of(out: Path) -> list[dict[str, Any]]:
    """All metrics that do not depend on the clock."""
    lines = list(read_metrics(out / "training" / "metrics.jsonl"))
    for line in lines:
        line.pop("seconds"), line.pop("words_per_second", None)
    return lines


# -- exact resume --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_killed_and_resumed(
    name: str, corpus: Path, undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "model"
    killed = corpus, out, plan(RECIPES[name]), 4, 7, "between steps"
    assert in_process(learn_and_die, *killed) == -signal.SIGKILL
    assert [path.name for path in (out / "training/checkpoints").iterdir()] == ["step-00000004"]
    assert not (out / "model.safetensors").exists()
    resume(corpus, out, evaluations=4)
    assert model(out) == model(undisturbed[name])
    assert metrics_of(out) == metrics_of(undisturbed[name])


def test_killed_twice_and_while_a_checkpoint_is_written(
    corpus: Path, undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "model"
    checkpoints = out / "training/checkpoints"
    for keep_at, die_at in ((3, 5), (9, 11)):
        killed = corpus, out, plan(STREAM), keep_at, die_at, "while writing"
        assert in_process(learn_and_die, *killed) == -signal.SIGKILL
        left = {path.name for path in checkpoints.iterdir() if path.name.startswith(".")}
        assert left == {f".step-{die_at:08d}"}
        newest = checkpoint.find_newest(checkpoints)
        assert newest is not None
        assert newest.name == f"step-{keep_at:08d}"
    resume(corpus, out, checkpoint_minutes=0, evaluations=4)
    assert model(out) == model(undisturbed["bilm-tf"])
    assert not list(checkpoints.glob(".step-*"))


def test_killed_before_the_first_checkpoint(
    corpus: Path, undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "model"
    killed = corpus, out, plan(), -1, 2, "between steps"
    assert in_process(learn_and_die, *killed) == -signal.SIGKILL
    resume(corpus, out, evaluations=4)
    assert model(out) == model(undisturbed["recommended"])


@pytest.mark.parametrize("recipe", [SENTENCES, STREAM.replace(lanes=6)], ids=lambda r: r.text)
def test_stopped_at_every_step_without_the_kernel(
    recipe: Recipe, corpus: Path, tmp_path: Path
) -> None:
    """Odd sizes: arrays that lie at any address."""
    odd = TINY.__class__(char_cnn=TINY.char_cnn, lstm=LSTMConfig(cells=15, width=7))
    asked = plan(recipe, Budget(tokens=500), config=odd)

    def stop(report: TrainingReport) -> None:
        if report.spent < 1:
            raise KeyboardInterrupt

    with kernel.without_kernel():
        pretrain(corpus, tmp_path / "one", **asked)
        with pytest.raises(KeyboardInterrupt):
            pretrain(corpus, tmp_path / "two", **asked, on_step=stop)
        for _ in range(30):
            try:
                resume(corpus, tmp_path / "two", on_step=stop, evaluations=4)
                break
            except KeyboardInterrupt:
                continue
    assert model(tmp_path / "one") == model(tmp_path / "two")


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_of_an_earlier_version_is_resumed(
    name: str, corpus: Path, undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    """Files written before the American spelling: "optimiser" in run.json and in checkpoints."""
    out = tmp_path / "model"
    killed = corpus, out, plan(RECIPES[name]), 4, 7, "between steps"
    assert in_process(learn_and_die, *killed) == -signal.SIGKILL
    path = out / "training/run.json"
    run = json.loads(path.read_text())
    run["recipe"]["optimiser"] = run["recipe"].pop("optimizer")
    run["version"] = 1  # which had no checksums
    del run["checksum"]
    path.write_text(json.dumps(run))
    path = out / "training/checkpoints/step-00000004/state.safetensors"
    arrays = load_file(path)
    old = {name.replace("optimizer.", "optimiser."): array for name, array in arrays.items()}
    assert old.keys() != arrays.keys()
    save_file(old, path)
    values = path.with_name("state.json")
    values.write_text(json.dumps(json.loads(values.read_text())["values"]))
    resume(corpus, out, evaluations=4)
    assert model(out) == model(undisturbed[name])
    assert metrics_of(out) == metrics_of(undisturbed[name])


def test_a_run_that_has_ended_ends_again(corpus: Path, tmp_path: Path) -> None:
    out, reports = tmp_path / "model", list[TrainingReport]()
    pretrain(corpus, out, **plan(budget=Budget(tokens=600)))
    before, lines = model(out), metrics_of(out)
    (out / "manifest.json").unlink()  # as if it had died while it wrote the model
    resume(corpus, out, on_step=reports.append)
    assert (model(out), metrics_of(out)) == (before, lines)
    assert len(reports) == 1, "no step was taken"
    assert reports[0].spent == 1
    assert Elmo.load(out).dim == 16


def test_a_longer_budget(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    pretrain(corpus, out, **plan(budget=Budget(tokens=600)))
    resume(corpus, out, budget=Budget(epochs=1))
    assert RunPlan.read(out / "training").budget == Budget(epochs=1)
    steps = [line["step"] for line in metrics_of(out)]
    assert steps == sorted(steps)
    assert [line.get("end", False) for line in metrics_of(out)].count(True) == 1
    facts = checkpoint.load(checkpoint.find_newest(out / "training/checkpoints"))[1]  # type: ignore[arg-type]
    assert facts["progress"]["place"] == [1, 0], "exactly one epoch"


# -- stopping ------------------------------------------------------------------------------------


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal that is reports: whoever runs the tests in the background has SIGINT ignored."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


def test_signals_stop_between_steps(
    number: int, corpus: Path, undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    out, handler = tmp_path / "model", signal.getsignal(number)

    def send(report: TrainingReport) -> None:
        if report.progress.step == 5:
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        pretrain(corpus, out, **plan(), on_step=send)
    newest = checkpoint.find_newest(out / "training/checkpoints")
    assert newest is not None
    assert newest.name == "step-00000005"
    assert signal.getsignal(number) == handler
    resume(corpus, out, evaluations=4)
    assert model(out) == model(undisturbed["recommended"])


def test_pytorch_gets_its_threads_back(corpus: Path, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        pretrain(corpus, tmp_path / "model", **plan(budget=Budget(tokens=1)))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


# -- what is refused -----------------------------------------------------------------------------


def test_another_corpus(corpus: Path, undisturbed: dict[str, Path], tmp_path: Path) -> None:
    other = toy_corpus(tmp_path, sentences=50)
    with pytest.raises(TrainingError, match="another corpus"):
        resume(other.path, undisturbed["recommended"])


def test_nothing_to_resume(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run to resume"):
        resume(corpus, tmp_path)


def test_damaged_run(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "training/run.json").write_text('{"config": {}}')
    with pytest.raises(FormatError, match=r"run\.json is damaged"):
        resume(corpus, tmp_path)


def test_a_run_of_no_corpus(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    pretrain(corpus, out, **plan(budget=Budget(tokens=1)))
    path = out / "training/run.json"
    run = json.loads(path.read_text()) | {"corpus": 3}
    path.write_text(json.dumps(seal(run)))
    with pytest.raises(FormatError, match=r"run\.json is damaged"):
        resume(corpus, out, evaluations=4)


@pytest.mark.parametrize("facts", ["{}", '{"progress": {"no": 1}}', "{"])
def test_damaged_checkpoint(facts: str, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    pretrain(corpus, out, **plan(budget=Budget(tokens=1)))
    newest = checkpoint.find_newest(out / "training/checkpoints")
    assert newest is not None
    (newest / "state.json").write_text(facts)
    with pytest.raises(FormatError, match="step-00000001 is damaged"):
        resume(corpus, out, evaluations=4)


def test_checkpoint_of_another_network(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    pretrain(corpus, out, **plan(budget=Budget(tokens=1)))
    path = out / "training/run.json"
    run = json.loads(path.read_text())
    run["config"]["lstm"]["cells"] = 32
    path.write_text(json.dumps(run))
    with pytest.raises(FormatError, match="its checksum differs"):
        resume(corpus, out, evaluations=4)
    path.write_text(json.dumps(seal(run)))
    with pytest.raises(FormatError, match="parameters is"):
        resume(corpus, out, evaluations=4)


@pytest.mark.parametrize("name", ["training/run.json", "manifest.json", "vocab.txt"])
def test_a_directory_in_use(name: str, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match="give another directory"):
        pretrain(corpus, tmp_path, **plan())
    assert not (tmp_path / "training/metrics.jsonl").exists()


def test_a_file_in_the_way(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("")
    with pytest.raises(InputError, match="is a file"):
        pretrain(corpus, tmp_path / "model", **plan())


# -- what is noted and left behind ---------------------------------------------------------------


def test_metrics_and_evaluations(undisturbed: dict[str, Path]) -> None:
    out = undisturbed["bilm-tf"]
    lines = list(read_metrics(out / "training/metrics.jsonl"))
    evaluated = [line for line in lines if "perplexity" in line]
    assert [line.get("end", False) for line in evaluated] == [False] * 3 + [True]
    assert all(line["held_out_words"] == evaluated[0]["held_out_words"] for line in evaluated)
    assert evaluated[-1]["tokens"] >= 2300
    (learned,) = (line for line in lines if "loss" in line)
    assert (learned["step"], learned["tokens"], learned["rate"]) == (25, 25 * 48, 0.2)
    assert learned["words_per_second"] > 0
    assert "<svg" in (out / "training/curve.svg").read_text()


def test_report(corpus: Path, tmp_path: Path) -> None:
    reports: list[TrainingReport] = []
    pretrain(corpus, tmp_path / "model", **plan(budget=Budget(epochs=1)), on_step=reports.append)
    assert [r.progress.step for r in reports] == [*range(1, len(reports)), len(reports) - 1]
    assert reports[0].held_out is None
    last = reports[-1]
    assert last.held_out is not None
    assert (last.spent, last.epochs) == (1, 1)
    valid = Corpus.open(corpus).valid
    assert valid is not None
    assert last.held_out.words == valid.tokens
    assert np.isfinite(last.loss)


def test_no_held_out_text_and_no_main_thread(tmp_path: Path) -> None:
    """As from a notebook's background thread, where signals are not ours."""
    text, reports = tmp_path / "text.txt", list[TrainingReport]()
    text.write_text(toy_text(50))
    options = CorpusOptions(form="tokenized", held_out=0)
    made = build_corpus([str(text)], tmp_path / "corpus", options, processes=1)
    with ThreadPoolExecutor(1) as thread:
        how = plan(budget=Budget(epochs=1), on_step=reports.append)
        thread.submit(lambda: pretrain(made.path, tmp_path / "model", **how)).result()
    assert reports[-1].held_out is None
    assert reports[-1].spent == 1
    assert metrics_of(tmp_path / "model") == []
    assert (tmp_path / "model/training/curve.svg").exists()


def test_held_out_is_spread_over_the_text(corpus: Path) -> None:
    opened = Corpus.open(corpus)
    assert opened.valid is not None
    everything = list(opened.held_out_sentences())
    assert sum(map(len, everything)) == opened.valid.tokens
    some = list(opened.held_out_sentences(opened.valid.tokens // 3))
    assert some == everything[::3]


def test_the_model_converts_and_embeds_the_same(
    undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    for name, out in undisturbed.items():
        elmo = Elmo.load(out, state="zero")
        assert (elmo.bilm.settled is not None) == (name == "recommended")
        elmo.save(tmp_path / name, "allennlp")
        text = ["ant bee cat", "lynx ant unreports-of words", "gnu"]
        there = Elmo.load(tmp_path / name / "weights.hdf5", state="zero").embed(text, layers="all")
        for a, b in zip(elmo.embed(text, layers="all"), there, strict=True):
            assert (a == b).all()
        if name == "recommended":  # a sentence starts from nothing, as it did in training
            for a, b in zip(Elmo.load(out).embed(text), elmo.embed(text), strict=True):
                assert (a == b).all()
