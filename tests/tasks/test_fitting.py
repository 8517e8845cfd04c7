"""The loop: it learns, keeps the best, stops, and resumes to the same bits."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.tasks import toy

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import tasks  # noqa: E402
from elmokit.errors import InputError, TrainingError  # noqa: E402
from elmokit.tasks.fitting import Unseen, batches_of, fit, part  # noqa: E402
from elmokit.tasks.settings import Settings  # noqa: E402
from elmokit.tasks.task import Examples, Schooling  # noqa: E402
from elmokit.tasks.trained import Trained  # noqa: E402


@pytest.fixture
def data(tmp_path: Path) -> tuple[Examples, Examples]:
    train, dev = (tasks.read("ner", path) for path in toy.files(tmp_path))
    return train, dev


def run(out: Path, data: tuple[Examples, Examples], settings: Settings, **how: object) -> Trained:
    return fit(settings, *data, out, static=toy.static(), **how)  # type: ignore[arg-type]


class Interrupting(Unseen):
    """Asks to stop after some steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, progress: object, batches: int) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGTERM)  # SIGINT may be ignored here


def test_it_learns(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    trained = run(tmp_path / "out", data, toy.settings(epochs=4))
    assert trained.scores[trained.settings.sister.SCORE] > 95
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
        run(tmp_path / "out", data, settings, watch=Interrupting(steps))
    assert not (tmp_path / "out/task.json").exists()
    torch.manual_seed(99)  # whatever happens between the two
    again = run(tmp_path / "out", data, settings, resume=True)
    for name, array in whole.state().items():
        assert torch.equal(array, again.state()[name]), name
    assert again.scores == whole.scores
    assert not list((tmp_path / "out/training").glob("step-*"))


def test_equal_seeds_equal_models(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    one, two, other = (
        run(tmp_path / name, data, toy.settings(epochs=1, seed=seed)).state()
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_the_best_epoch_is_kept_and_it_stops(
    tmp_path: Path, data: tuple[Examples, Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter([50.0, 80.0, 70.0, 80.0, 90.0])
    monkeypatch.setattr("elmokit.tasks.ner.score", lambda *_: {"f1": next(given)})
    noted = []

    class Noting(Unseen):
        def epoch(self, line: object) -> None:
            noted.append(line)

    settings = toy.settings(epochs=9, patience=2)
    trained = run(tmp_path / "out", data, settings, watch=Noting())
    assert [line["scores"]["f1"] for line in noted] == [50, 80, 70, 80]
    assert trained.scores == {"f1": 80.0} and trained.about["best_epoch"] == 2
    rates = [0.01 * (1 - (k - 1 / 105) / 9) for k in (1, 2, 3, 4)]
    assert [line["rate"] for line in noted] == pytest.approx(rates)


def test_while_nothing_is_right_it_goes_on(
    tmp_path: Path, data: tuple[Examples, Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmokit.tasks.ner.score", lambda *_: {"f1": 0.0})
    trained = run(tmp_path / "out", data, toy.settings(epochs=3, patience=1))
    assert trained.about["epochs"] == 3


def test_nothing_is_overwritten(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    run(tmp_path / "out", data, toy.settings(epochs=1))
    with pytest.raises(InputError, match="already"):
        run(tmp_path / "out", data, toy.settings(epochs=1))


def test_another_run_is_not_gone_on_with(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", data, toy.settings(), watch=Interrupting(3))
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
    assert list(trained.about["unseen_labels"].values()) == [1]


def test_a_loss_that_is_no_number(tmp_path: Path, data: tuple[Examples, Examples]) -> None:
    with pytest.raises(TrainingError, match="rate"):
        run(tmp_path / "out", data, toy.settings(rate=1e30))


def test_batches() -> None:
    lengths = [(7 * i) % 31 for i in range(1000)]
    ten = Schooling(epochs=1, batch=10, rate=1.0, steps=50)
    batches = batches_of(lengths, ten, seed=0, epoch=0)
    assert sorted(i for batch in batches for i in batch) == list(range(1000))
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches]
    assert max(spread) <= 3
    assert batches == batches_of(lengths, ten, seed=0, epoch=0)
    assert batches != batches_of(lengths, ten, seed=0, epoch=1)
    assert len(batches_of(lengths[:20], ten, 0, 0)) == 50


def test_a_share_is_the_same_for_equal_seeds(data: tuple[Examples, Examples]) -> None:
    train = data[0]
    some = part(train, toy.settings(share=0.25))
    assert len(some) == 15 and part(train, toy.settings(share=0.25)).items == some.items
    assert part(train, toy.settings(share=0.25, seed=1)).items != some.items
    assert part(train, toy.settings()).items == train.items
