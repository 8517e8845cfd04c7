"""Sample efficiency: numbers by hand, and what is shown of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.tasks import toy

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.probe.tasks.made_up import files, outcome, words_in

from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.tasks.efficiency import (
    SampleEfficiency,
    mean_curve,
    passes_per_epoch,
    sample_efficiency,
    shares_needed,
)

SHARES = [0.01, 0.1, 1.0]
BASELINE = [(20, 22), (50, 52), (70, 74)]
ELMO = [(40, 42), (71, 71), (80, 82)]
CURVES: dict[str, list[list[float]]] = {
    "baseline": [[60, 70, 68], [50, 60, 74]],
    "elmo": [[65, 71, 79], [74, 81]],
}


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    examples = [6, 60, 600]

    def made(name: str, scores: list[tuple[int, int]]) -> list[Any]:
        return [
            [
                outcome(score, seed=seed, examples=size, curve=CURVES[name][seed])
                for seed, score in enumerate(both)
            ]
            for size, both in zip(examples, scores, strict=True)
        ]

    settings = toy.settings(elmo=str(toy.model(tmp_path)))
    baseline, elmo = made("baseline", BASELINE), made("elmo", ELMO)
    return SampleEfficiency(settings, files(tmp_path), (0, 1), SHARES, baseline, elmo).measured()


def test_by_size(found: dict[str, Any]) -> None:
    sizes = found["sizes"]
    assert [size["gain"] for size in sizes] == [20, 20, 9]
    assert sizes[2]["relative_error_reduction"] == pytest.approx(100 * 9 / 28)
    assert [size["elmo"]["mean"] for size in sizes] == [41, 71, 81]
    assert [size["elmo"]["system"] for size in sizes] == ["elmo-1%", "elmo-10%", "elmo"]
    assert found["signature"]["systems"][:2] == ["baseline-1%", "elmo-1%"]
    first, middle, last = found["enough"]
    assert first == {"share": 0.01, "measured": 0.01, "between": None}
    assert middle["measured"] == 0.1
    assert middle["between"] == pytest.approx(10 ** (-2 + 10 / 30))  # 41 to 71, and 51 between
    assert last["measured"] == 1.0 and last["between"] == pytest.approx(10 ** (-1 + 1 / 10))


def test_enough_is_nothing_where_elmo_is_worse() -> None:
    size = {"share": 0.5, "baseline": {"mean": 3}, "elmo": {"mean": 2}}
    assert shares_needed([size]) == [{"share": 0.5, "measured": None, "between": None}]


def test_small_sets_are_read_often() -> None:
    settings = toy.settings()  # 4 a batch, at least 100 steps
    assert settings.effective_preset.training.steps == 100
    assert passes_per_epoch(settings, 6) == 50 and passes_per_epoch(settings, 400) == 1
    assert passes_per_epoch(settings, 60) == math.ceil(100 / 15)


def test_by_epoch(found: dict[str, Any]) -> None:
    noted = found["epochs"]
    assert noted["baseline_best"] == [70, 74] and noted["baseline_best_epoch"] == [2, 3]
    assert noted["elmo_passes"] == [2, 2]  # as good is not better
    assert noted["elmo_best_epoch"] == [3, 2] and noted["share"] == 1.0
    assert noted["mean"]["elmo"] == [69.5, 76, 80]


def test_a_run_that_stopped_early_keeps_its_best() -> None:
    assert mean_curve([[1, 3, 2], [5]]) == [3, 4, 3.5]


def test_the_tables(found: dict[str, Any]) -> None:
    by_size, by_epoch = results.render_tables(found)
    assert by_size.rows[0][:6] == ["1 %", "6", "21.00 ± 1.41", "41.00 ± 1.41", "+20.00", "2 of 2"]
    assert [row[-1] for row in by_size.rows] == ["≤ 1 %", "≈ 2.2 %", "≈ 13 %"]
    assert by_size.rows[2][6] == "-32.1 %" and by_size.bold == [(0, 4)]
    assert "1 % 50 times, 10 % 7 times." in by_size.note
    assert "is as good as" not in by_size.note.split("Enough")[0]  # 71 < 72
    assert "ELMo passes at epoch 2 what the baseline needs 2.5 for (means" in by_epoch.note
    assert [row[3] for row in by_epoch.rows] == ["2", "2"] and by_epoch.bold == [(0, 3), (1, 3)]
    found["enough"][2] |= {"measured": 0.1}
    assert "With ELMo 10 % is as good as 100 % without." in results.render_tables(found)[0].note
    found["enough"][2] |= {"measured": None, "between": None}
    found["epochs"]["elmo_passes"] = [None, 2]
    by_size, by_epoch = results.render_tables(found)
    assert by_size.rows[2][-1] == "> 100 %" and by_epoch.rows[0][3] == "never"
    assert "passes the baseline's best with 1 of 2 seeds." in by_epoch.note


def test_the_pictures(found: dict[str, Any]) -> None:
    by_size, by_epoch = results.render_figures(found)
    assert (by_size.name, by_epoch.name) == ("sizes", "epochs")
    words = words_in(by_size.svg)
    assert {"1 %", "10 %", "100 %", "with ELMo 81.0", "baseline 72.0"} <= set(words)
    words = words_in(by_epoch.svg)
    assert {"1", "2", "3", "with ELMo 80.0", "baseline's best 71.0"} <= set(words)


def test_one_share_is_enough_for_a_picture(found: dict[str, Any]) -> None:
    for name in ("sizes", "enough"):
        found[name] = found[name][2:]
    assert "100 %" in words_in(results.render_figures(found)[0].svg)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs an ELMo"):
        sample_efficiency(toy.settings(), files(tmp_path), tmp_path)
    with pytest.raises(InputError, match="no share"):
        sample_efficiency(toy.settings(elmo="builtin"), files(tmp_path), tmp_path, shares=[])
