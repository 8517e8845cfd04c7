"""`elmo settle`."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import GOLDEN

from elmokit import Elmo

MODEL = str(GOLDEN / "models" / "plain")


def test_settle_on_text(elmo_command, tmp_path: Path, text_file: Path) -> None:
    done = elmo_command("settle", MODEL, text_file, "--out", tmp_path / "m", "--sentences", 3)
    assert done.code == 0, done.err
    assert done.err == "settled on 3 sentences, 16 words\n"
    assert "settled.safetensors" in done.out
    by_hand = Elmo.load(MODEL)
    by_hand.settle(["The bank lent money .", "I sat by the bank .", "The bank lent money ."])
    assert (Elmo.load(tmp_path / "m").settled.cell == by_hand.settled.cell).all()


def test_words_are_taken_as_they_are(elmo_command, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a-b c.\nd\n")
    done = elmo_command("settle", MODEL, tmp_path / "words", "--tokenized", "--out", tmp_path / "m")
    assert done.err == "settled on 2 sentences, 3 words\n"
    piped = elmo_command("settle", MODEL, "-", "--lines", "--out", tmp_path / "n", stdin=b"a b\nc")
    assert piped.err == "settled on 2 sentences, 3 words\n"


def test_zeros_and_back(elmo_command, tmp_path: Path, text_file: Path) -> None:
    done = elmo_command("settle", MODEL, "--zero", "--out", tmp_path / "zero.hdf5")
    assert done.err == "every sentence starts from zeros\n"
    assert "stored: zeros" in elmo_command("inspect", tmp_path / "zero.hdf5").out
    again = elmo_command("settle", tmp_path / "zero.hdf5", text_file, "--out", tmp_path / "m")
    assert "has not been trained with" in again.err and "--zero" in again.err


def test_what_cannot_be_done(elmo_command, tmp_path: Path, text_file: Path) -> None:
    out = ("--out", tmp_path / "m")
    neither = elmo_command("settle", MODEL, *out)
    assert neither.code == 2 and "give a TEXT in the language of" in neither.err
    both = elmo_command("settle", MODEL, text_file, "--zero", *out)
    assert both.code == 2 and "--zero reads no text" in both.err
    missing = elmo_command("settle", MODEL, tmp_path / "none.txt", *out)
    assert missing.code == 1 and "none.txt does not exist" in missing.err
    elmo_command("settle", MODEL, text_file, *out)
    refused = elmo_command("settle", MODEL, text_file, *out)
    assert refused.code == 1 and "exists; nothing was written" in refused.err
    assert refused.err.endswith("replace it with --force\n")
