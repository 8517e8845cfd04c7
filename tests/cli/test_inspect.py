"""`elmo inspect`."""

from __future__ import annotations

import json
from pathlib import Path

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
