"""The loop: it learns, keeps the best, stops, and resumes to the same bits."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.tasks import toy

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import tasks  # noqa: E402
from elmokit.errors import InputError, TrainingError  # noqa: E402
from elmokit.tasks.fitting import FitProgress, epoch_batches, fit, take_share  # noqa: E402
from elmokit.tasks.settings import Settings  # noqa: E402
from elmokit.tasks.task import Examples, TrainingConfig, get_task  # noqa: E402
from elmokit.tasks.trained import Trained  # noqa: E402
from elmokit.train.run_lock import hold_run  # noqa: E402


@pytest.fixture
def data(tmp_path: Path) -> tuple[Examples, Examples]:
    train, dev = (tasks.read("ner", path) for path in toy.files(tmp_path))
    return train, dev


def run(out: Path, data: tuple[Examples, Examples], settings: Settings, **how: object) -> Trained:
    return fit(settings, *data, out, static=toy.static(), **how)  # type: ignore[arg-type]


def interrupt_after(steps: int) -> Callable[[FitProgress, int], None]:
    """Return a callback that asks the run to stop after some steps."""
    left = iter(range(steps - 1, -1, -1))

    def on_step(progress: FitProgress, batches: int) -> None:
        if next(left, None) == 0:
            os.kill(os.getpid(), signal.SIGTERM)  # SIGINT may be ignored here

    return on_step


def score_with(monkeypatch: pytest.MonkeyPatch, scores: Iterable[float]) -> None:
    """Let the epochs have these scores."""
    each = iter(scores)
    task = dataclasses.replace(get_task("ner"), score=lambda *_: {"f1": next(each)})
    monkeypatch.setattr("elmokit.tasks.ner.TASK", task)


def test_it_learns(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    trained = run(tmp_path / "out", data, toy.settings(epochs=4))
    assert trained.scores[trained.settings.definition.main_score] > 95
    lines = (tmp_path / "out/training/epochs.jsonl").read_text().splitlines()
    noted = [json.loads(line) for line in lines]
    assert [line["epoch"] for line in noted] == [1, 2, 3, 4][: len(noted)]
    assert noted[-1]["loss"] < noted[0]["loss"]


@pytest.mark.parametrize("elmo", [False, True], ids=["baseline", "elmo"])
@pytest.mark.parametrize("steps", [7, 110, 210], ids=["first", "second", "last"])
def test_resumed_it_ends_the_same(
    tmp_path: Path,
    data: tuple[Examples, Examples],
    monkeypatch: pytest.MonkeyPatch,
    elmo: bool,
    steps: int,
) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    model = str(toy.model(tmp_path)) if elmo else "none"
    settings = toy.settings(elmo=model, dropout=0.3)
    whole = run(tmp_path / "whole", data, settings)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", data, settings, on_step=interrupt_after(steps))
    assert not (tmp_path / "out/task.json").exists()
    torch.manual_seed(99)  # whatever happens between the two
    again = run(tmp_path / "out", data, settings, resume=True)
    for name, array in whole.state_dict().items():
        assert torch.equal(array, again.state_dict()[name]), name
    assert again.scores == whole.scores
    assert not list((tmp_path / "out/training").glob("step-*"))


def test_a_small_training_set_gets_more_epochs(
    tmp_path: Path, data: tuple[Examples, Examples]
) -> None:
    seen: list[int] = []

    def stop(progress: FitProgress, batches: int) -> None:
        seen.append(progress.max_epochs)
        raise RuntimeError("enough")

    for name, changes in {
        "preset": {"epochs": None},
        "share": {"epochs": None, "share": 0.5},
    }.items():
        with pytest.raises(RuntimeError, match="enough"):
            run(tmp_path / name, data, toy.settings(**changes), on_step=stop)
    with pytest.raises(RuntimeError, match="enough"):
        run(tmp_path / "asked", data, toy.settings(epochs=2), on_step=stop)
    examples = len(data[0])
    expected = toy.settings(epochs=None).effective_preset.max_epochs(examples)
    assert seen == [expected, expected, 2] and expected > 10


def test_a_run_with_the_old_spelling_is_resumed(
    tmp_path: Path, data: tuple[Examples, Examples]
) -> None:
    """Plans and checkpoints had "optimiser" before they had "optimizer"."""
    from safetensors.torch import load_file, save_file

    settings = toy.settings(dropout=0.3)
    whole = run(tmp_path / "whole", data, settings)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", data, settings, on_step=interrupt_after(7))
    plan = tmp_path / "out/training/plan.json"
    assert '"optimizer"' in plan.read_text()
    plan.write_text(plan.read_text().replace('"optimizer"', '"optimiser"'))
    (state,) = (tmp_path / "out/training").glob("step-*/state.safetensors")
    tensors = load_file(state)
    assert any(name.startswith("optimizer/") for name in tensors)
    save_file({k.replace("optimizer/", "optimiser/"): a for k, a in tensors.items()}, state)
    values = state.with_name("state.json")  # which had no checksums then
    values.write_text(json.dumps(json.loads(values.read_text())["values"]))
    again = run(tmp_path / "out", data, settings, resume=True)
    for name, array in whole.state_dict().items():
        assert torch.equal(array, again.state_dict()[name]), name


def test_equal_seeds_equal_models(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    one, two, other = (
        run(tmp_path / name, data, toy.settings(epochs=1, seed=seed)).state_dict()
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_the_best_epoch_is_kept_and_it_stops(
    tmp_path: Path, data: tuple[Examples, Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    score_with(monkeypatch, [50.0, 80.0, 70.0, 80.0, 90.0])
    noted: list[Any] = []
    settings = toy.settings(epochs=9, patience=2)
    trained = run(tmp_path / "out", data, settings, on_epoch=noted.append)
    assert [line["scores"]["f1"] for line in noted] == [50, 80, 70, 80]
    assert trained.scores == {"f1": 80.0} and trained.metadata["best_epoch"] == 2
    rates = [0.01 * (1 - (k - 1 / 105) / 9) for k in (1, 2, 3, 4)]
    assert [line["rate"] for line in noted] == pytest.approx(rates)


def test_while_nothing_is_right_it_goes_on(
    tmp_path: Path, data: tuple[Examples, Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    score_with(monkeypatch, [0.0, 0.0, 0.0])
    trained = run(tmp_path / "out", data, toy.settings(epochs=3, patience=1))
    assert trained.metadata["epochs"] == 3


def test_a_zero_after_a_better_score_is_a_worse_epoch(
    tmp_path: Path, data: tuple[Examples, Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    score_with(monkeypatch, [0.0, 80.0, 0.0, 0.0, 90.0])
    trained = run(tmp_path / "out", data, toy.settings(epochs=5, patience=2))
    assert trained.scores == {"f1": 80.0}
    assert trained.metadata["best_epoch"] == 2 and trained.metadata["epochs"] == 4


def test_nothing_is_overwritten(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    run(tmp_path / "out", data, toy.settings(epochs=1))
    with pytest.raises(InputError, match="already"):
        run(tmp_path / "out", data, toy.settings(epochs=1))


def test_another_run_is_not_gone_on_with(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", data, toy.settings(), on_step=interrupt_after(3))
    with pytest.raises(TrainingError, match=r"rate: 0\.01, now 0\.02"):
        run(tmp_path / "out", data, toy.settings(rate=0.02), resume=True)
    smaller = (Examples(data[0].items[:-1]), data[1])
    with pytest.raises(TrainingError, match="other data"):
        run(tmp_path / "out", smaller, toy.settings(), resume=True)
    changed = [*data[1].items[1:], data[1].items[0]]
    with pytest.raises(TrainingError, match="other data"):
        run(tmp_path / "out", (data[0], Examples(changed)), toy.settings(), resume=True)
    with pytest.raises(TrainingError, match="no run"):
        run(tmp_path / "elsewhere", data, toy.settings(), resume=True)


def test_labels_that_training_never_shows(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    odd = tmp_path / "odd.conll"
    odd.write_text("Rex X I-DOG\nbarks X O\n", encoding="utf-8")
    trained = run(tmp_path / "out", (data[0], tasks.read("ner", odd)), toy.settings(epochs=1))
    assert list(trained.metadata["unseen_labels"].values()) == [1]


def test_a_loss_that_is_no_number(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    with pytest.raises(TrainingError, match="rate"):
        run(tmp_path / "out", data, toy.settings(rate=1e30))


def test_batches() -> None:
    lengths = [(7 * i) % 31 for i in range(1000)]
    ten = TrainingConfig(epochs=1, batch=10, rate=1.0, steps=50)
    batches = epoch_batches(lengths, ten, seed=0, epoch=0)
    assert sorted(i for batch in batches for i in batch) == list(range(1000))
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches]
    assert max(spread) <= 3
    assert batches == epoch_batches(lengths, ten, seed=0, epoch=0)
    assert batches != epoch_batches(lengths, ten, seed=0, epoch=1)
    assert len(epoch_batches(lengths[:20], ten, 0, 0)) == 50


def test_a_share_is_the_same_for_equal_seeds(data: tuple[Examples, Examples]) -> None:
    train = data[0]
    some = take_share(train, toy.settings(share=0.25))
    assert len(some) == 15 and take_share(train, toy.settings(share=0.25)).items == some.items
    assert take_share(train, toy.settings(share=0.25, seed=1)).items != some.items
    assert take_share(train, toy.settings()).items == train.items


def test_progress_is_shown_on_a_terminal(
    data: tuple[Examples, Examples],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = toy.settings(epochs=1)
    monkeypatch.setattr("elmokit.tasks.display.is_terminal", lambda: True)
    run(tmp_path / "silent", data, settings, progress=False)
    assert capsys.readouterr().err == ""
    epochs: list[int] = []
    run(tmp_path / "shown", data, settings, on_epoch=lambda record: epochs.append(record["epoch"]))
    assert capsys.readouterr().err.startswith("epoch  1  loss") and epochs == [1]


def test_a_failed_start_leaves_nothing(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    """The same command works once the mistake is corrected; what others put there stays."""
    out = tmp_path / "out"
    settings = toy.settings(vectors=str(tmp_path / "gone.txt"))
    with pytest.raises(InputError, match=r"gone\.txt"):
        fit(settings, *data, out)
    assert not out.exists()
    (out / "training").mkdir(parents=True)
    (out / "training" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"gone\.txt"):
        fit(settings, *data, out)
    assert [path.name for path in (out / "training").iterdir()] == ["notes.txt"]


def test_a_run_that_was_interrupted_early_can_be_resumed(
    tmp_path: Path, data: tuple[Examples, Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = toy.settings(epochs=1)
    with monkeypatch.context() as patch:
        patch.setattr("elmokit.tasks.fitting._make_optimizer", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "out", data, settings)
    run(tmp_path / "out", data, settings, resume=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_one_process_trains_in_a_directory(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    with hold_run(tmp_path / "out/training"), pytest.raises(TrainingError, match="is in use"):
        run(tmp_path / "out", data, toy.settings())
    assert not (tmp_path / "out").exists()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", data, toy.settings(), on_step=interrupt_after(7))
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*") if path.is_file()}
    with hold_run(tmp_path / "out/training"), pytest.raises(TrainingError, match="is in use"):
        run(tmp_path / "out", data, toy.settings(), resume=True)
    after = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*") if path.is_file()}
    assert after == before
    run(tmp_path / "out", data, toy.settings(), resume=True)
    assert not (tmp_path / "out/training/lock.json").exists()
