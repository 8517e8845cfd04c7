"""The page of the tasks, from comparisons that were made up."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(REPOSITORY / "runs" / "tasks"))
    return import_module("page")


def made_up() -> dict[str, Any]:
    def system(*scores: float) -> dict[str, Any]:
        mean = sum(scores) / len(scores)
        return {"scores": list(scores), "mean": mean, "spread": 1.0, "seconds": 90.0}

    rows = [
        {"share": 1, "baseline": system(80, 82), "elmo": system(84, 86)},
        {"share": 0.1, "baseline": system(60, 60), "elmo": system(80, 59)},
    ]
    for row in rows:
        baseline, elmo = row["baseline"]["mean"], row["elmo"]["mean"]  # type: ignore[index]
        row["relative_error_reduction"] = 100 * (elmo - baseline) / (100 - baseline)
    return {
        "score": "f1",
        "rows": rows,
        "weights": {"input": {"shares": [0.2, 0.5, 0.3], "gamma": 1.25}},
        "runs": [{"share": 1, "examples": 14041}, {"share": 0.1, "examples": 1404}],
        "biLM": "abcdef0123456789",
        "elmokit": "1.2.3",
        "data": {"test": "0123456789"},
    }


def test_tables_and_picture(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ner").mkdir()
    (tmp_path / "ner/comparison.json").write_text(json.dumps(made_up()))
    out, picture = tmp_path / "tables.md", tmp_path / "tasks.svg"
    call = ["page.py", str(tmp_path), "--out", str(out), "--picture", str(picture)]
    monkeypatch.setattr("sys.argv", call)
    page.main()
    text = out.read_text(encoding="utf-8")
    assert (
        "| Named entities | CoNLL-2003 | 14,041 | f1 | 81.00 ± 1.00 | 85.00 ± 1.00 | +4.00 "
        "| −21.1 % | −21 % | 2 of 2 |" in text
    )
    assert "| CoNLL-2003 | 10 % | 1,404 | 60.00 ± 1.00 | 69.50 ± 1.00 | +9.50 | −23.8 % |" in text
    assert "| CoNLL-2003 | input | 0.20 | 0.50 | 0.30 | 1.25 |" in text
    assert "elmokit 1.2.3, biLM abcdef012345, test data ner 01234567." in text
    drawn = xml.parse(picture).getroot()
    assert [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}text")].count("85.0") == 1


def test_the_documentation_has_what_was_measured(page: Any) -> None:
    measured = page.read(REPOSITORY / "runs" / "tasks" / "measured")
    text = (REPOSITORY / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert len(measured) >= 4
    tables = page.whole, page.small, page.weights, page.signature
    for line in (line for table in tables for line in table(measured)):
        assert line in text
    shown = (REPOSITORY / "docs" / "tasks.svg").read_text(encoding="utf-8")
    assert shown == page.picture(measured)


def test_measured_baselines_count_as_done(page: Any) -> None:
    """tasks.sh takes them over, since they are of today's presets and not of the biLM."""
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.systems import make_trial, without_elmo
    from elmokit.tasks.trials import read_outcome

    directory = REPOSITORY / "runs" / "tasks" / "measured"
    taken = 0
    for name, comparison in page.read(directory).items():
        settings = without_elmo(Settings.from_dict(comparison["settings"], name))
        for row in comparison["rows"]:
            for seed, score in enumerate(row["baseline"]["scores"]):
                trial = make_trial(settings.replace(seed=seed, share=row["share"]))
                outcome = read_outcome(
                    directory / name / trial.name, trial, comparison["data"], None
                )
                assert outcome is not None and outcome.main(comparison["score"]) == score
                taken += 1
    assert taken == len(list(directory.glob("*/*/outcome.json"))) > 0
