"""`elmo embed`: what is printed and what is written."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import vectors
from elmokit.elmo import Elmo

MODEL = str(GOLDEN / "models" / "plain")


def test_something_to_look_at(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, "I sat by the bank.", "The bank lent me money.")
    assert result.code == 0
    assert "I sat by the bank ." in result.out
    dim = Elmo.load(MODEL).dim
    assert f"(6, {dim})" in result.out
    assert "The same word in two places" in result.out
    row = next(line for line in result.out.splitlines() if line.startswith("bank  sentence 1"))
    assert row.split()[:7] == "bank sentence 1, word 5 sentence 2,".split()
    assert "1.00" in row, "the word vector is the same in both places"


def test_a_long_sentence_gets_neighbors_instead_of_a_matrix(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, "--layers", "top", " ".join("abcdefghijklmnopqrst"))
    assert result.out.count("nearest") == 20
    assert "by the top layer" in result.out


def test_many_sentences_want_a_file(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, stdin=b"one two\n" * 30)
    assert "the first 20 sentences" in result.err
    assert "20  one two" in result.out and "21  one two" not in result.out


def test_json_is_the_vectors(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, "--json", "--layers", "all", "A bank.", "")
    lines = [json.loads(line) for line in result.out.splitlines()]
    expected = Elmo.load(MODEL).embed(["A bank.", ""], layers="all")
    assert [line["words"] for line in lines] == [["A", "bank", "."], []]
    assert [line["shape"] for line in lines] == [list(v.shape) for v in expected]
    assert (np.array(lines[0]["vectors"], np.float32) == expected[0]).all(), "to the last bit"


def test_stdin_tokenized(elmo_command) -> None:
    result = elmo_command(
        "embed", "-m", MODEL, "--tokenized", "--json", stdin=b"do n't U.S. e-mail.\n"
    )
    assert json.loads(result.out)["words"] == ["do", "n't", "U.S.", "e-mail."]


def test_running_text_is_split(elmo_command) -> None:
    text = b"He left. She\nstayed.\n\nA heading\n\nThe end."
    result = elmo_command("embed", "-m", MODEL, "--split", "--json", "--file", "-", stdin=text)
    words = [json.loads(line)["words"] for line in result.out.splitlines()]
    assert [" ".join(w) for w in words] == ["He left .", "She stayed .", "A heading", "The end ."]


def test_text_that_is_not_utf8(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, "--json", stdin=b"fine\ncaf\xe9\n")
    assert result.code == 1
    assert "stdin, line 2 is not UTF-8 (byte 0xe9 at 3)" in result.err


@pytest.mark.parametrize("suffix", ["h5", "npz", "parquet"])
def test_to_a_file(elmo_command, text_file: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"v.{suffix}"
    result = elmo_command("embed", "-m", MODEL, "--file", text_file, "--out", out)
    assert result.code == 0
    assert "60 sentences, 220 words" in result.out
    elmo = Elmo.load(MODEL)
    with vectors.load_vectors(out) as stored:
        assert len(stored) == 60
        assert stored[0].tolist() == elmo.embed("The bank lent money.").tolist()
        assert stored[1].shape == (0, elmo.dim)
        assert list(stored.words(2)) == ["I", "sat", "by", "the", "bank", "."]
        assert stored.signature["model"] == elmo.bilm.fingerprint
    again = elmo_command("embed", "-m", MODEL, "--file", text_file, "--out", out)
    assert again.code == 1 and "exists" in again.err
    assert elmo_command("embed", "-m", MODEL, "--force", "--out", out, "x").code == 0
    assert len(vectors.load_vectors(out)) == 1


@pytest.mark.parametrize("state", ["settled", "carry"])
def test_an_interrupted_run_continues(
    elmo_command, text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    import elmokit.elmo

    monkeypatch.setattr(elmokit.elmo, "WINDOW_WORDS", 20)
    out, whole = tmp_path / "v.h5", tmp_path / "whole.h5"
    arguments = ("embed", "-m", MODEL, "--state", state, "--file", text_file, "--out")
    elmo_command(*arguments, whole)

    wait = 25
    write = vectors.VectorWriter.write

    def interrupted(self: vectors.VectorWriter, *sentence: object) -> None:
        nonlocal wait
        wait -= 1
        if wait == 0:
            raise KeyboardInterrupt
        write(self, *sentence)  # type: ignore[arg-type]

    monkeypatch.setattr(vectors.VectorWriter, "write", interrupted)
    stopped = elmo_command(*arguments, out)
    assert stopped.code == 130
    assert "the same command continues" in stopped.err
    assert not out.exists()

    monkeypatch.setattr(vectors.VectorWriter, "write", write)
    changed = elmo_command(*arguments, out, "--layers", "top")
    assert changed.code == 1 and "layers" in changed.err
    result = elmo_command(*arguments, out)
    assert result.code == 0
    assert "60 sentences, 24 of them by an earlier run" in result.out
    for a, b in zip(vectors.load_vectors(out), vectors.load_vectors(whole), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_float16(elmo_command, tmp_path: Path) -> None:
    out = tmp_path / "v.npz"
    elmo_command("embed", "-m", MODEL, "--float16", "--out", out, "The bank")
    assert vectors.load_vectors(out)[0].dtype == np.float16


COMPRESSED = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("stdin", [False, True])
def test_compressed_text_is_read_like_plain_text(
    elmo_command, tmp_path: Path, kind: str, stdin: bool
) -> None:
    data = COMPRESSED[kind]("\ufeffThe bank.\r\nA café.\n".encode())
    path = tmp_path / "text"
    path.write_bytes(data)
    result = elmo_command(
        *("embed", "-m", MODEL, "--json", "--file", "-" if stdin else path),
        stdin=data if stdin else None,
    )
    assert result.code == 0, result.err
    words = [json.loads(line)["words"] for line in result.out.splitlines()]
    assert words == [["The", "bank", "."], ["A", "café", "."]]


def test_a_missing_file_is_reported_before_the_model_is_loaded(elmo_command) -> None:
    result = elmo_command("embed", "-m", "/no/model", "--file", "/no/text.txt", "--json")
    assert result.code == 1 and "/no/text.txt" in result.err
