"""`elmo convert`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo, formats

MODEL = str(GOLDEN / "models" / "plain")


def test_convert_there_and_back(elmo_command, tmp_path: Path) -> None:
    assert elmo_command("convert", MODEL, tmp_path / "m").code == 0
    assert formats.detect_format(tmp_path / "m").kind == "native"
    back = elmo_command("convert", tmp_path / "m", tmp_path / "back.hdf5")
    assert back.code == 0
    assert back.err == "", "nothing is left behind"
    assert formats.read(tmp_path / "back.hdf5").fingerprint == formats.read(MODEL).fingerprint
    refused = elmo_command("convert", MODEL, tmp_path / "m")
    assert refused.code == 1 and "exists; nothing was written" in refused.err
    assert elmo_command("convert", MODEL, tmp_path / "m", "--force").code == 0


@pytest.mark.parametrize("out", ["m", "m.hdf5", "m.zip"])
def test_a_converted_model_gives_the_same_vectors(elmo_command, tmp_path: Path, out: str) -> None:
    done = elmo_command("convert", "builtin", tmp_path / out, "--format", "allennlp")
    assert done.code == 0
    assert done.err == "left out, since this format cannot store it: the softmax\n"
    source, converted = Elmo.load(), Elmo.load(tmp_path / out)
    text = "She went to the bank ."
    np.testing.assert_array_equal(converted.embed(text, "all"), source.embed(text, "all"))
    np.testing.assert_array_equal(converted.embed(text), source.embed(text))
    assert converted.bilm.fingerprint == source.bilm.fingerprint
    shown = elmo_command("inspect", tmp_path / out).out
    assert "stored: zeros, every sentence starts anew" in shown
