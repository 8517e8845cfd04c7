"""`elmo convert`."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import GOLDEN

from elmokit import formats

MODEL = str(GOLDEN / "models" / "plain")


def test_convert_there_and_back(elmo_command, tmp_path: Path) -> None:
    assert elmo_command("convert", MODEL, tmp_path / "m").code == 0
    assert formats.detect_format(tmp_path / "m").kind == "native"
    back = elmo_command("convert", tmp_path / "m", tmp_path / "back.hdf5")
    assert back.code == 0
    assert "left out, since this format cannot store it: the settled state" in back.err
    assert formats.read(tmp_path / "back.hdf5").fingerprint == formats.read(MODEL).fingerprint
    refused = elmo_command("convert", MODEL, tmp_path / "m")
    assert refused.code == 1 and "exists; nothing was written" in refused.err
    assert elmo_command("convert", MODEL, tmp_path / "m", "--force").code == 0
