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
    table = result.out.partition("The same word in two places")[2].splitlines()
    assert [line.split()[0] for line in table[2:]] == ["bank"], "function words are left out"
    assert table[2].startswith("bank  I sat by the *bank*.  The *bank* lent me money.")
    assert "1.00" in table[2], "the word vector is the same in both places"
    other = elmo_command("embed", "-m", MODEL, "It is the one.", "He was the other one.")
    assert "\nthe " in other.out.partition("The same word in two places")[2], "nothing else repeats"


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
    content = out.read_bytes()
    again = elmo_command("embed", "-m", MODEL, "--file", text_file, "--out", out)
    assert again.code == 0 and "nothing to do" in again.out and "60 sentences" in again.out
    for other in (["--layers", "top"], ["--float16"], ["one more sentence"], ["--dtype", "int8"]):
        refused = elmo_command("embed", "-m", MODEL, "--file", text_file, "--out", out, *other)
        if "one more sentence" in other:
            refused = elmo_command("embed", "-m", MODEL, "--out", out, *other)
        assert refused.code == 1 and "exists" in refused.err and "--force" in refused.err
    assert out.read_bytes() == content
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


# -- the uses of one word --------------------------------------------------------------------------

SENSES = """# a comment
river\tI sat by the bank .
river\tThe bank was muddy .
money\tThe bank lent me money .
money\tA bank closed .
money\tNothing here .
"""


def test_uses_of_a_word_are_printed(elmo_command, tmp_path: Path) -> None:
    path = tmp_path / "senses.tsv"
    path.write_text(SENSES)
    result = elmo_command("embed", "-m", MODEL, "--word", "Bank", "--file", path)
    assert result.code == 0, result.err
    assert "“Bank”: 4 uses" in result.out
    assert result.out.count("*bank*") == 8, "each use, and the use nearest to it"
    assert "the nearest use has the same sense for" in result.out
    assert "1 sentence without 'Bank' left out" in result.err
    plain = elmo_command("embed", "-m", MODEL, "--word", "bank", "A bank.", "The bank.")
    assert "sense" not in plain.out and plain.out.count("*bank*") == 4
    missing = elmo_command("embed", "-m", MODEL, "--word", "river", "A bank.")
    assert missing.code == 1 and "'river' is in none of the 1 sentences" in missing.err


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_picture_of_the_uses(
    elmo_command, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    source, out = tmp_path / "senses.tsv", tmp_path / f"bank.{suffix}"
    source.write_text(SENSES)
    arguments = ("embed", "-m", MODEL, "--word", "bank", "--file", source, "--picture", out)
    result = elmo_command(*arguments, "--open")
    assert result.code == 0, result.err
    assert "4 uses of 'bank' in 3 layers" in result.out
    text = out.read_text(encoding="utf-8")
    assert text.count("<circle") == 12 + 2, "one dot per use and layer, two in the legend"
    assert opened == [out.resolve().as_uri()]
    again = elmo_command(*arguments)
    assert again.code == 1 and "--force" in again.err
    one = elmo_command(*arguments, "--force", "--layers", "top")
    assert "in 1 layer\n" in one.out and out.read_text().count("<circle") == 4 + 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--picture", "x.svg", "A bank."), "--word"),
        (("--word", "bank", "--open", "A bank."), "--picture"),
        (("--word", "bank", "--json", "A bank."), "--json"),
        (("--rows", "words", "A bank."), "--out"),
        (("--rows", "words", "--pool", "mean", "--out", "x.parquet", "A bank."), "--pool"),
        (("--normalize", "A bank."), "--out or --json"),
        (("--column", "text", "A bank."), "--file"),
    ],
)
def test_options_that_do_not_fit_together(elmo_command, arguments, message: str) -> None:
    result = elmo_command("embed", *arguments)
    assert result.code == 2 and message in result.err


def test_a_picture_has_a_known_format(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, "--word", "a", "--picture", "x.png", "a")
    assert result.code == 1 and "*.svg or *.html" in result.err


# -- tables ----------------------------------------------------------------------------------------


def test_a_parquet_column_row_by_row(elmo_command, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = ["The bank\nlent money.", None, "A bank."]
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"review": rows, "title": ["a", "b", "c"]}), source)
    vague = elmo_command("embed", "-m", MODEL, "--file", source, "--out", out)
    assert vague.code == 1 and "--column" in vague.err and "review, title" in vague.err
    result = elmo_command(
        *("embed", "-m", MODEL, "--file", source, "--column", "review"),
        *("--out", out, "--pool", "mean", "--normalize"),
    )
    assert result.code == 0, result.err
    assert "one row per sentence with a vector of" in result.out
    table = pq.read_table(out)
    assert table.column("sentence").to_pylist() == [0, 1, 2], "one row per row, also without text"
    assert table.column("text").to_pylist() == ["The bank\nlent money.", "", "A bank."]
    assert table.column("word_count").to_pylist() == [5, 0, 3]
    split = elmo_command(
        "embed", "-m", MODEL, "--file", source, "--column", "review", "--split", "--json"
    )
    assert len(split.out.splitlines()) == 2


def test_pooled_json(elmo_command) -> None:
    result = elmo_command("embed", "-m", MODEL, "--json", "--pool", "max", "--normalize", "A bank.")
    line = json.loads(result.out)
    assert line["shape"] == [Elmo.load(MODEL).dim]
    assert np.linalg.norm(line["vectors"]) == pytest.approx(1, abs=1e-6)


def test_a_file_that_is_not_text_is_named(elmo_command, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes("Zwei Wörter".encode("utf-16"))
    result = elmo_command("embed", "-m", MODEL, "--file", path)
    assert result.code == 1 and "is UTF-16 text" in result.err and "iconv" in result.err


def test_the_name_of_a_file_as_text_is_noticed(elmo_command, text_file: Path) -> None:
    result = elmo_command("embed", "-m", MODEL, text_file)
    assert result.code == 0 and f"--file {text_file}" in result.err


def test_a_word_that_is_too_long_is_reported_once_and_not_printed(elmo_command) -> None:
    word = "Donau" * 100
    with pytest.warns(UserWarning, match=r"\(500 bytes\) is cut off") as warned:
        result = elmo_command("embed", "-m", MODEL, f"Die {word} fährt.", f"Eine {word}.", "x" * 99)
    assert len(warned) == 1 and "Donau" * 20 not in str(warned[0].message)
    assert "DonauDonau" in result.out and "Donau" * 20 not in result.out


def test_device(elmo_command) -> None:
    pytest.importorskip("torch", reason="other devices need torch")
    results = [
        elmo_command(
            "embed", "-m", MODEL, "--json", "--device", device, "--threads", "1", "A bank."
        )
        for device in ("cpu", "cpu-torch")
    ]
    ours, theirs = (np.array(json.loads(result.out)["vectors"]) for result in results)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    refused = elmo_command("embed", "-m", MODEL, "--device", "gpu", "A bank.")
    assert refused.code == 1 and "available: cpu, cpu-torch" in refused.err


def test_split_rows_keep_their_number(elmo_command, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    texts = ["The bank lent money. It was rich.", None, "A bank.\n\nYes."]
    pq.write_table(pa.table({"text": texts}), source)
    made = elmo_command(
        "embed", "-m", MODEL, "--file", source, "--split", "--pool", "mean", "--out", out
    )
    assert made.code == 0, made.err
    table = pq.read_table(out)
    assert table.column("row").to_pylist() == [0, 0, 2, 2]
    assert table.column("text").to_pylist()[1:3] == ["It was rich.", "A bank."]


def test_a_column_of_a_text_file(elmo_command, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("A bank.\n")
    wrong = elmo_command("embed", "-m", MODEL, "--file", text, "--column", "review", "--json")
    assert wrong.code == 2 and "text.txt is text" in wrong.err


def test_few_columns(elmo_command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = elmo_command("embed", "-m", MODEL, "我去银行存钱，我去银行取钱。").out.splitlines()
    nearest = [line for line in lines if "nearest" in line]
    assert len(nearest) == 14 and not any("…" in line for line in nearest)
