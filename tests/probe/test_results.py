"""Measurements and their files."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.probe.test_training import NOTED, found, run  # noqa: F401  fixtures

from elmokit import Elmo
from elmokit.errors import FormatError, InputError, WriteError
from elmokit.probe import results
from elmokit.probe.results import (
    Measurement,
    find_measurements,
    load_measurement,
    make_measurement,
    make_signature,
    measurements_directory,
    render_tables,
    save_measurement,
)
from elmokit.probe.tables import table_to_csv
from elmokit.probe.training import METRICS_FILE, training_measurement


def test_kept_and_read(found: Measurement, tmp_path: Path) -> None:  # noqa: F811
    written = save_measurement(found, tmp_path / "out")
    assert [path.name for path in written] == [
        "training.json",
        "training.tex",
        "training.csv",
        "training.svg",
    ]
    latex = written[1].read_text(encoding="utf-8")
    assert f'% model: "{found["signature"]["model"]}"' in latex and "\\toprule" in latex
    assert "\\label{tab:training}" in latex
    assert written[2].read_text(encoding="utf-8") == table_to_csv(render_tables(found)[0])
    assert load_measurement(written[0]) == found
    assert save_measurement(found, tmp_path / "out") == written, (
        "the same measurement has the same place"
    )
    assert not list((tmp_path / "out").glob(".*"))


def test_every_published_measurement_has_tables_for_a_paper(tmp_path: Path) -> None:
    shipped = Path(results.elmokit.__file__).parent / "builtin" / "measured"
    of_tasks = REPOSITORY / "runs" / "analyses" / "0.1.0"
    for path in [*shipped.glob("*.json"), *of_tasks.glob("*.json")]:
        measured = load_measurement(path)
        written = save_measurement(measured, tmp_path, path.stem)
        assert written[0].read_bytes() == path.read_bytes()
        assert sum(each.suffix == ".csv" for each in written) == len(render_tables(measured))
        for each in written:
            if each.suffix == ".csv":
                header, *rows = csv.reader(each.read_text(encoding="utf-8").splitlines())
                assert len(set(header)) == len(header) and all(header)
                assert all(len(row) == len(header) for row in rows)
            if each.suffix == ".tex":
                latex = each.read_text(encoding="utf-8")
                body = [line for line in latex.splitlines() if not line.startswith("%")]
                assert not re.search(r"(?<!\\)[%#_]|[“”–−±≤ρλγ…]", "".join(body))
                assert latex.count("\\begin{table}") == latex.count("\\end{table}")


def test_another_measurement_is_not_overwritten(elmo: Elmo, run: Path, tmp_path: Path) -> None:  # noqa: F811
    first = save_measurement(training_measurement(elmo, run), tmp_path / "out")[0]
    (run / METRICS_FILE).write_text(json.dumps(NOTED[1]) + "\n")
    second = save_measurement(training_measurement(elmo, run), tmp_path / "out")[0]
    assert first != second and len(load_measurement(first)["noted"]) > len(
        load_measurement(second)["noted"]
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/training.json").write_text("my notes")
    third = save_measurement(training_measurement(elmo, run), tmp_path / "mine")[0]
    assert third.name.startswith("training-") and third.parent.name == "mine"
    assert (tmp_path / "mine/training.json").read_text() == "my notes"


def test_the_cache(found: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    fingerprint = found["signature"]["model"]
    path = save_measurement(found)[0]
    assert path.parent == measurements_directory(fingerprint) and tmp_path / "cache" in path.parents
    (path.parent / "other.json").write_text("{}")
    (path.parent / "worse.json").write_text("no JSON")
    assert find_measurements(fingerprint, [path.parent, tmp_path / "nowhere", path.parent]) == [
        found
    ]
    assert find_measurements("0" * 64, [path.parent]) == []


def test_the_signature_says_what_determined_it(elmo: Elmo, run: Path) -> None:  # noqa: F811
    one = make_signature(elmo, {"run": run / METRICS_FILE}, seed=1)
    assert one["model"] == elmo.bilm.fingerprint and one["seed"] == 1
    assert (
        one["data"]["run"]
        == make_signature(elmo, {"run": run / METRICS_FILE}, seed=2)["data"]["run"]
    )
    first, second = (
        results.measurement_id(make_measurement("training", make_signature(elmo, {}, seed=seed)))
        for seed in (1, 2)
    )
    assert first != second
    moved = make_measurement("training", {**make_signature(elmo, {}, seed=1), "elmokit": "9"})
    assert results.measurement_id(moved) == first, "another version is the same measurement"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "elmokit-measurement"}', "\0"])
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FormatError, match="not a measurement"):
        load_measurement(tmp_path / "x.json")


def test_clear_errors(found: Measurement, tmp_path: Path) -> None:  # noqa: F811
    with pytest.raises(InputError, match="cannot be read"):
        load_measurement(tmp_path / "none.json")
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps({**found, "version": 2}))
    with pytest.raises(FormatError, match="newer"):
        load_measurement(newer)
    with pytest.raises(InputError, match="unknown kind of measurement 'chess'"):
        make_measurement("chess", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="Not a directory; make room, or give another"):
        save_measurement(found, tmp_path / "file" / "below")
