"""`settle_model`: a model with the state after some text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo, InputError, settle_model

MODEL = GOLDEN / "models" / "plain"
TEXT = ["Der Hund bellt .", "", ["Die", "Katze", "schläft", "."], "Nichts ."]


@pytest.mark.parametrize("out", ["m", "m.hdf5", "m.zip"])
def test_the_state_is_saved_in_every_format(tmp_path: Path, out: str) -> None:
    settled = settle_model(MODEL, TEXT, tmp_path / out)
    assert (settled.sentences, settled.words) == (3, 10), "a sentence without words does not count"
    assert settled.left_out == [] and not settled.started_from_zeros
    expected = Elmo.load(MODEL)
    expected.settle([sentence for sentence in TEXT if sentence])
    again = Elmo.load(tmp_path / out)
    np.testing.assert_array_equal(again.settled.cell, expected.settled.cell)
    np.testing.assert_array_equal(again.embed("Ein Hund ."), expected.embed("Ein Hund ."))
    assert np.abs(again.embed("Ein Hund .") - Elmo.load(MODEL).embed("Ein Hund .")).max() > 1e-4
    assert again.bilm.fingerprint == expected.bilm.fingerprint


def test_no_text_means_zeros(tmp_path: Path) -> None:
    assert settle_model(MODEL, None, tmp_path / "zero").sentences == 0
    zero = Elmo.load(tmp_path / "zero")
    assert zero.settled.is_zero
    expected = Elmo.load(MODEL, state="zero").embed("Ein Hund .")
    np.testing.assert_array_equal(zero.embed("Ein Hund ."), expected)
    assert settle_model(tmp_path / "zero", TEXT, tmp_path / "more").started_from_zeros


def test_the_number_of_sentences(tmp_path: Path) -> None:
    endless = iter(lambda: "Ein Satz .", None)
    assert settle_model(MODEL, endless, tmp_path / "m", max_sentences=7).sentences == 7
    assert settle_model(MODEL, TEXT, tmp_path / "a", max_sentences=None).sentences == 3
    with pytest.raises(InputError, match="max_sentences is 0; expected 1 or more"):
        settle_model(MODEL, TEXT, tmp_path / "b", max_sentences=0)


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    settle_model(MODEL, TEXT, tmp_path / "m")
    with pytest.raises(InputError, match="exists; nothing was written"):
        settle_model(MODEL, TEXT, tmp_path / "m")
    settle_model(tmp_path / "m", None, tmp_path / "m", overwrite=True)
    assert Elmo.load(tmp_path / "m").settled.is_zero, "a model can be replaced by itself"


def test_a_text_without_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="have no words; settle needs at least one"):
        settle_model(MODEL, ["", []], tmp_path / "m")
    assert not (tmp_path / "m").exists()
