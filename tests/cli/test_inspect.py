"""`elmo inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import random_bilm, small_config

from elmokit.elmo import Elmo


def test_inspect(elmo_command, tmp_path: Path) -> None:
    bilm = random_bilm(small_config())
    Elmo(bilm).save(tmp_path / "m")
    result = elmo_command("inspect", tmp_path / "m")
    assert "2x11_6_17cnn_1xhighway" in result.out
    assert f"{bilm.parameters:,}" in result.out
    assert bilm.fingerprint in result.out.replace("\n", "").replace(" ", "")
    facts = json.loads(elmo_command("inspect", tmp_path / "m", "--json").out)
    assert facts["fingerprint"] == bilm.fingerprint
    assert facts["settled"] is True and facts["layers"] == 3


def test_a_file_is_shown_as_it_was_named(
    elmo_command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Elmo(random_bilm(small_config())).save(tmp_path / "one.hdf5")
    out = elmo_command("inspect", tmp_path / "one.hdf5").out
    assert "one.hdf5" in "".join(out.split("format")[0].split())
    assert Elmo.load(tmp_path / "one.hdf5").bilm.fingerprint in out, "on one line"
