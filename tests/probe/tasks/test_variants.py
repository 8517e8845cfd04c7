"""Which layers, how much λ, where: numbers and what is shown of them, from runs made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.tasks import toy

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.probe.tasks.made_up import files, outcome, weights, words_in

from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.tasks import runs, variants
from elmokit.probe.tasks.variants import compare_layers, compare_placements
from elmokit.tasks.settings import Settings
from elmokit.tasks.trials import Outcome, Trial

EVEN, UNEVEN = (0.33, 0.34, 0.33), (0.2, 0.5, 0.3)
SCORES = {"baseline": (80, 82), "elmo-last": (84, 83), "elmo-l2=1": (85, 82), "elmo": (86, 84)}


def no_training(monkeypatch: pytest.MonkeyPatch, scores: dict[str, tuple[float, ...]]) -> None:
    """Every run ends at once with a score by its name."""

    def run(trials: Sequence[Trial], *_: object, **__: object) -> list[Outcome]:
        found = []
        for trial in trials:
            settings, shares = trial.settings, EVEN if trial.settings.l2 == 1 else UNEVEN
            shares = (0.0, 0.0, 1.0) if settings.layers == "last" else shares
            learned: dict[str, object] = {}
            for place in (
                ("input", "output")
                if settings.effective_placement == "both"
                else (settings.effective_placement,)
            ):
                learned |= {} if settings.baseline else weights(*shares, place=place)
            score = scores[trial.system][settings.seed]
            found.append(outcome(score, seed=settings.seed, weights=learned))
        return found

    monkeypatch.setattr(runs, "run_trials", run)


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    no_training(monkeypatch, SCORES)
    asked = Settings(task="ner", elmo=str(toy.model(tmp_path)))
    return compare_layers(asked, files(tmp_path), tmp_path / "runs", seeds=[0, 1]).measured()


def as_task(found: dict[str, Any], task: str) -> dict[str, Any]:
    return found | {"task": task}


def test_the_numbers(layers: dict[str, Any]) -> None:
    assert layers["kind"] == "layers" and layers["of"] == "test" and layers["score"] == "f1"
    found = {one["choice"]: one for one in layers["choices"]}
    assert list(found) == ["baseline", "last", "1", "0.001"]
    assert found["0.001"]["mean"] == 85 and found["0.001"]["spread"] == pytest.approx(2**0.5)
    assert found["last"]["scores"] == [84, 83] and found["last"]["dev"] == [83, 82]
    assert found["1"]["weights"]["input"]["shares"] == pytest.approx(list(EVEN))
    signed = layers["signature"]
    assert len(signed["model"]) == 64 and set(signed["data"]) == {"train", "dev", "test"}
    assert signed["seeds"] == [0, 1] and signed["systems"] == list(SCORES)
    assert signed["settings"]["settings"]["task"] == "ner"
    assert json.loads(json.dumps(layers)) == layers


def test_the_tables(layers: dict[str, Any]) -> None:
    scores, weighed = results.render_tables(layers)
    assert "f1 on test" in scores.title and "2 seeds" in scores.title
    rows = {row[0]: list(row[1:]) for row in scores.rows}
    assert rows["baseline"] == ["81.00 ± 1.41", "", "", "80.00"]
    assert rows["last layer only"] == ["83.50 ± 0.71", "+2.50 (2 of 2)", "", "82.50"]
    assert rows["all layers, λ=1"] == ["83.50 ± 2.12", "+2.50 (1 of 2)", "+0.00 (1 of 2)", "82.50"]
    assert rows["all layers, λ=0.001"][2] == "+1.50 (2 of 2)"
    assert scores.bold == [(3, 1)]
    assert "better than the last alone: +1.50, better with 2 of 2 seeds" in scores.note
    assert "paper" not in scores.columns  # it has no such numbers for names
    assert [row[0] for row in weighed.rows] == [
        "all layers, λ=1: input",
        "all layers, λ=0.001: input",
    ]
    assert [row[-1] for row in weighed.rows] == ["0.007", "0.167"]
    assert weighed.bold == [(0, 2), (1, 2)]


def test_the_last_alone_may_win(layers: dict[str, Any]) -> None:
    layers["choices"][3]["scores"] = [81, 82]
    last = layers["choices"][1]["scores"]
    change = sum(layers["choices"][3]["scores"]) / 2 - sum(last) / 2
    (scores, _) = results.render_tables(layers)
    assert f"worse than the last alone: {change:+.2f}, better with 0 of 2 seeds" in scores.note


def test_seeds_that_disagree_say_nothing(layers: dict[str, Any]) -> None:
    last = layers["choices"][1]["scores"]
    layers["choices"][3]["scores"] = [last[0] + 1, last[1] - 1.5]
    (scores, _) = results.render_tables(layers)
    assert "not distinguishable from the last alone: -0.25, better with 1 of 2 seeds" in scores.note


def test_the_paper_beside_it(layers: dict[str, Any]) -> None:
    scores = results.render_tables(as_task(layers, "srl"))[0]
    assert scores.columns[-1] == "paper"
    assert [row[-1] for row in scores.rows] == ["81.6", "84.1", "84.6", "84.8"]
    drawn = words_in(results.render_figures(as_task(layers, "srl"))[0].svg)
    assert "the paper, SRL" in drawn and drawn.count("2.50") == 3  # ours twice, 84.1 − 81.6
    layers["choices"][2]["choice"] = "10"  # a λ that is not in the paper
    assert results.render_tables(as_task(layers, "srl"))[0].rows[2][-1] == ""


def test_the_pictures(layers: dict[str, Any]) -> None:
    gains, weighed = results.render_figures(layers)
    words = words_in(gains.svg)
    assert gains.name == "" and "4.00" in words and "last layer only" in words
    assert any("over the baseline, which has 81.00 (test set, 2 seeds)" in text for text in words)
    assert weighed.name == "weights" and "γ 1.00" in words_in(weighed.svg)


def test_a_loss_is_drawn_to_the_left(layers: dict[str, Any]) -> None:
    layers["choices"][3]["scores"] = [70, 72]
    assert "-10.00" in words_in(variants.render_figures(layers)[0].svg)


def test_one_seed_is_little(layers: dict[str, Any]) -> None:
    for one in layers["choices"]:
        one["scores"] = one["scores"][:1]
    scores = variants.render_tables(layers)[0]
    assert (
        "With a single seed" in scores.note
        and scores.rows[0][1] == "80.00"
        and "1 seed" in scores.title
    )


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"baseline": (80,), "elmo": (84,), "elmo-output": (82,), "elmo-both": (83.5,)}
    no_training(monkeypatch, scores)
    asked = Settings(task="ner", elmo=str(toy.model(tmp_path)), placement="both")
    compared = compare_placements(asked, files(tmp_path), tmp_path / "runs", seeds=[0])
    found = compared.measured()
    assert [one["system"] for one in found["choices"]] == list(scores)
    table, weighed = results.render_tables(found)
    assert "Best at the input; the paper's placement for this task is the input." in table.note
    assert [row[1] for row in table.rows] == ["80.00", "84.00", "82.00", "83.50"]
    assert [row[0] for row in weighed.rows] == [
        "input",
        "output",
        "input and output: input",
        "input and output: output",
    ]
    found["choices"][3]["mean"] = 84.0
    table = results.render_tables(found)[0]
    assert "Equally good at the input, input and output;" in table.note
    assert table.bold == [(1, 1), (3, 1)]
    qa = results.render_tables(as_task(found, "qa"))[0]
    assert [row[-1] for row in qa.rows] == ["80.8", "85.1", "84.8", "85.6"]
    assert len(results.render_figures(found)) == 2


def test_without_a_test_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_training(monkeypatch, SCORES)
    train, dev = toy.files(tmp_path)
    from elmokit.tasks.trials import TaskFiles

    asked = Settings(task="ner", elmo=str(toy.model(tmp_path)))
    found = compare_layers(asked, TaskFiles(str(train), str(dev)), tmp_path, seeds=[0]).measured()
    assert found["of"] == "dev" and "dev" not in variants.render_tables(found)[0].columns


def test_lambdas_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_training(monkeypatch, {**SCORES, "elmo-l2=10": (90.0, 90.0)})
    asked = Settings(task="ner", elmo=str(toy.model(tmp_path)))
    compared = compare_layers(asked, files(tmp_path), tmp_path, lambdas=[10, 10], seeds=[0])
    assert [one["choice"] for one in compared.measured()["choices"]] == ["baseline", "last", "10"]


def test_an_analysis_needs_an_elmo_and_a_seed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs an ELMo"):
        compare_placements(toy.settings(), files(tmp_path), tmp_path)
    with pytest.raises(InputError, match="no seed"):
        compare_placements(toy.settings(elmo="builtin"), files(tmp_path), tmp_path, seeds=[])
