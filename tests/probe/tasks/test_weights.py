"""Weights of trained task models, from directories as they would be on disk."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.tasks import toy

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.probe.tasks.made_up import weights, words_in

from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.probe import results
from elmokit.probe.tasks.weights import learned_weights


def model(
    place: Path,
    *shares: float,
    gamma: float = 1.0,
    biLM: str = "b" * 64,
    dev: str = "dev",
    epochs: int = 3,
    **asked: object,
) -> Path:
    """What is left of a training."""
    learned = weights(*shares, gamma=gamma) if shares else {}
    about = {
        "format": "elmokit task",
        "version": 1,
        "elmokit": "0.1",
        "settings": toy.settings(**({"elmo": "some"} | asked)).to_dict(),
        "biLM": biLM,
        "weights": learned,
        "scores": {},
        "facts": {},
        "vocabulary": [],
        "vectors": None,
        "files": {"model.safetensors": {"sha256": hashlib.sha256(str(place).encode()).hexdigest()}},
    }
    (place / "training").mkdir(parents=True)
    (place / "task.json").write_text(json.dumps(about))
    (place / "training/plan.json").write_text(json.dumps({"data": [str(place), dev]}))
    lines = (json.dumps({"epoch": k, "weights": learned}) for k in range(epochs))
    (place / "training/epochs.jsonl").write_text("\n".join(lines) + "\n")
    return place


def test_seeds_are_one_row(tmp_path: Path) -> None:
    model(tmp_path / "ner/elmo-0", 0.2, 0.5, 0.3, gamma=1.0, seed=0)
    model(tmp_path / "ner/elmo-1", 0.3, 0.5, 0.2, gamma=2.0, seed=1)
    model(tmp_path / "ner/elmo-l2=1-0", 0.33, 0.33, 0.34, l2=1.0)
    model(tmp_path / "ner/elmo-last-0", 0, 0, 1, layers="last")
    model(tmp_path / "ner/baseline-0", elmo="none")
    model(tmp_path / "ner/.half/elmo-2", 0.1, 0.1, 0.8, seed=2)  # being written
    found = learned_weights([tmp_path, tmp_path / "ner"]).measured()
    first, second = found["systems"]
    assert (first["name"], first["seeds"], second["name"]) == ("ner", [0, 1], "ner, λ=1")
    place = first["places"][0]
    assert place["shares"] == pytest.approx([0.25, 0.5, 0.25]) and place["gamma"] == 1.5
    assert place["spread"] == pytest.approx(0.1 / 2**0.5)
    assert found["skipped"] == {"without ELMo": 1, "one layer only": 1}
    assert found["signature"]["model"] == "b" * 64
    assert len(found["signature"]["data"]["task models"]) == 3
    (table,) = results.render_tables(found)
    assert table.rows[0] == ["ner", "input", "0.250", "0.500", "0.250", "1.50", "2", "0.071"]
    assert table.bold[0] == (0, 3) and "1 without ELMo, 1 one layer only" in table.note
    assert "has the largest weight in 1 of 1" in table.note
    (picture,) = results.render_figures(found)
    assert {"ner: input", "ner, λ=1: input", "0.50", "γ 1.50"} <= set(words_in(picture.svg))


def test_data_sets_are_told_apart(tmp_path: Path) -> None:
    model(tmp_path / "news/elmo-0", 0.2, 0.8, dev="one")
    model(tmp_path / "books", 0.6, 0.4, dev="two")
    (tmp_path / "news/elmo-0/outcome.json").write_text("{}")
    found = learned_weights([tmp_path / "news", tmp_path / "books"]).measured()
    assert [one["name"] for one in found["systems"]] == ["ner (news)", "ner (books)"]


def test_a_model_without_its_plan(tmp_path: Path) -> None:
    """It was copied; where it stands says what belongs together."""
    for seed in (0, 1):
        (model(tmp_path / f"m{seed}", 0.2, 0.8, seed=seed) / "training/plan.json").unlink()
    (system,) = learned_weights([tmp_path]).measured()["systems"]
    assert system["seeds"] == [0, 1]


def test_how_they_moved(tmp_path: Path) -> None:
    place = model(tmp_path / "m", 0.2, 0.8, epochs=12)
    found = learned_weights([place]).measured(by_epoch=True)
    assert len(found["systems"][0]["epochs"]) == 12
    _, moved = results.render_tables(found)
    assert [row[2] for row in moved.rows] == ["1", "2", "4", "8", "12"]
    assert moved.rows[0][3:] == ["0.200", "0.800"]
    _, picture = results.render_figures(found)
    assert picture.name == "epochs" and {"0", "12", "LSTM 1 0.80"} <= set(words_in(picture.svg))
    (place / "training/epochs.jsonl").unlink()
    found = learned_weights([place]).measured(by_epoch=True)
    assert len(results.render_tables(found)) == len(results.render_figures(found)) == 1


def test_seeds_that_ran_for_different_epochs(tmp_path: Path) -> None:
    for seed, epochs in ((0, 2), (1, 3)):
        model(tmp_path / f"m{seed}", 0.2, 0.8, seed=seed, epochs=epochs)
    (system,) = learned_weights([tmp_path]).measured(by_epoch=True)["systems"]
    assert len(system["epochs"]) == 2  # as far as both ran


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{", FormatError, "task.json is damaged"),
        ('{"format": "other"}', FormatError, "task.json is damaged"),
        (None, InputError, "no trained task model"),
    ],
)
def test_what_is_no_model(
    tmp_path: Path, text: str | None, kind: type[ElmoError], message: str
) -> None:
    if text is not None:
        (tmp_path / "task.json").write_text(text)
    with pytest.raises(kind, match=message):
        learned_weights([tmp_path])


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a directory"):
        learned_weights([tmp_path / "nowhere"])
    place = model(tmp_path / "none", elmo="none")
    with pytest.raises(InputError, match="without ELMo: 1"):
        learned_weights([place]).measured()
    model(tmp_path / "a", 0.5, 0.5)
    model(tmp_path / "b", 0.5, 0.5, biLM="c" * 64)
    with pytest.raises(InputError, match="2 different biLMs"):
        learned_weights([tmp_path]).measured()
    log = tmp_path / "a/training/epochs.jsonl"
    for wrong in ('{"weights": 3}', '{"weights": {}}', "{", json.dumps({"weights": weights(0.1)})):
        log.write_text(f"{log.read_text().splitlines()[0]}\n{wrong}\n")
        with pytest.raises(FormatError, match=r"epochs\.jsonl:2: "):
            learned_weights([tmp_path])
    about = json.loads((tmp_path / "b/task.json").read_text())
    del about["weights"]
    (tmp_path / "b/task.json").write_text(json.dumps(about))
    with pytest.raises(FormatError, match="has no layer weights"):
        learned_weights([tmp_path / "b"])
