"""Comparisons: both systems, the same seeds, what was done is not done again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import small_config
from tests.tasks import toy

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import formats
from elmokit.bilm.random import random_bilm
from elmokit.errors import FormatError, InputError
from elmokit.tasks.comparison import Comparison, compare
from elmokit.tasks.systems import BASELINE, WITH_ELMO
from elmokit.tasks.trials import Outcome, TaskFiles, TrialUpdate


def outcome(system: str, seed: int, score: float, **changes: object) -> Outcome:
    given: dict[str, object] = {
        "system": system,
        "seed": seed,
        "dev": {"f1": 1.0},
        "test": {"f1": score},
        "weights": {},
        "curve": [score],
        "best_epoch": 1,
        "seconds": 2.0,
        "examples": 60,
    }
    return Outcome(**(given | changes))  # type: ignore[arg-type]


def made_up() -> Comparison:
    learned = [{"input": {"shares": [a, 1 - a], "gamma": g}} for a, g in ((0.2, 1.0), (0.4, 2.0))]
    outcomes = [
        (1.0, outcome("baseline", 0, 80.0)),
        (1.0, outcome("elmo", 0, 84.0, weights=learned[0])),
        (1.0, outcome("baseline", 1, 82.0)),
        (1.0, outcome("elmo", 1, 81.0, weights=learned[1])),
    ]
    return Comparison(toy.settings(), {}, "abc", True, outcomes)


def test_the_numbers() -> None:
    found = made_up()
    assert (
        found.system_scores(BASELINE, 1.0).mean == 81
        and found.system_scores(WITH_ELMO, 1.0).mean == 82.5
    )
    assert found.system_scores(BASELINE, 1.0).spread == pytest.approx(2**0.5)
    assert found.error_reduction(1.0) == pytest.approx(100 * 1.5 / 19)
    assert found.wins(1.0) == 1
    weights = found.weights()["input"]
    assert weights["shares"] == pytest.approx([0.3, 0.7]) and weights["gamma"] == 1.5
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["baseline"]["mean"] == 81


def test_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of its own, twice: the second time nothing is left to do."""
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    train, dev = toy.files(tmp_path)
    files = TaskFiles(str(train), str(dev), str(toy.write(tmp_path / "test.conll", 8, 3)))
    settings = toy.settings(
        elmo=str(toy.model(tmp_path)), epochs=1, vectors=str(toy.vectors_file(tmp_path))
    )

    def once() -> tuple[Comparison, list[TrialUpdate]]:
        heard: list[TrialUpdate] = []
        comparison = compare(
            settings,
            files,
            tmp_path / "runs",
            seeds=[3],
            shares=(1.0, 0.5),
            jobs=2,
            callback=heard.append,
        )
        return comparison, heard

    found, heard = once()
    names = {"baseline-3", "elmo-3", "baseline-50%-3", "elmo-50%-3"}
    assert {moment.run for moment in heard if moment.ended} == names
    assert [o.examples for _, o in found.outcomes] == [60, 60, 30, 30]
    assert all(o.test and o.curve for _, o in found.outcomes)
    again, heard = once()
    assert again == found and {moment.text for moment in heard} == {"done before"}
    for path in (tmp_path / "runs").glob("*/outcome.json"):  # as older versions wrote it
        content = json.loads(path.read_text().replace('"optimizer"', '"optimiser"'))
        del content["checksum"]
        path.write_text(json.dumps(content))
    assert once()[0] == found
    formats.write(random_bilm(small_config(), seed=1), tmp_path / "bilm", "native")
    with pytest.raises(InputError, match="other settings, data or biLM"):
        once()
    formats.write(random_bilm(small_config()), tmp_path / "bilm", "native")
    assert once()[0] == found
    train.write_text(train.read_text() + "\nEve X O\n", encoding="utf-8")
    with pytest.raises(InputError, match="other settings, data or biLM"):
        once()


def test_an_error_of_a_run_is_ours(tmp_path: Path) -> None:
    train, dev = toy.files(tmp_path)
    dev.write_text("one O\nthree\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"dev\.conll:2"):
        compare(
            toy.settings(elmo=str(toy.model(tmp_path)), vectors="none"),
            TaskFiles(str(train), str(dev)),
            tmp_path / "runs",
            seeds=[0],
            jobs=1,
        )


def test_a_comparison_needs_an_elmo(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs an ELMo"):
        compare(toy.settings(), TaskFiles("a", "b"), tmp_path)
