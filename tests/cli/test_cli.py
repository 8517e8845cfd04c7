"""The command line as a user meets it: what is printed, where, and the exit code."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN, random_bilm, small_config

import elmokit
from elmokit import formats, vectors
from elmokit.cli import COMMANDS, main
from elmokit.elmo import Elmo

MODEL = str(GOLDEN / "models" / "plain")


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def elmo_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Call `elmo` with arguments, and stdin if given."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(exit.value.code or 0), out, err)

    return call


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The bank lent money.\n\nI sat by the bank.\n" * 20, encoding="utf-8")
    return path


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(elmo_command, name: str) -> None:
    result = elmo_command(name, "--help")
    assert result.code == 0
    assert f"elmo {name}" in result.out.split("Options:")[0].split("\n", 1)[1], "an example"
    assert name in elmo_command("--help").out


def test_version(elmo_command) -> None:
    assert elmokit.__version__ in elmo_command("--version").out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("embed", "--layers", "bottom", "x"),
        ("embed", "--json", "--out", "x.h5", "x"),
        ("embed", "--file", "f", "x"),
        ("embed", "--float16", "x"),
        ("embed", "--tokenized", "--split", "x"),
        ("embed", "--threads", "0", "x"),
        ("inspect",),
        ("convert", "a"),
    ],
)
def test_wrong_use_is_2(elmo_command, arguments: tuple[str, ...]) -> None:
    result = elmo_command(*arguments)
    assert result.code == 2
    assert "Error" in result.err and "Traceback" not in result.err


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("embed", "-m", "/nowhere", "x"), "no model at '/nowhere'"),
        (("embed", "-m", "smal", "x"), "did you mean 'small'?"),
        (("inspect", "/nowhere"), "no such file or directory"),
        (("embed", "-m", MODEL, "--file", "/nowhere.txt"), "/nowhere.txt"),
        (("embed", "-m", MODEL, "--layers", "7", "x"), "this model has 3"),
        (("embed", "-m", MODEL, "--out", "x.csv", "x"), ".h5"),
    ],
)
def test_an_error_is_one_line(elmo_command, arguments: tuple[str, ...], message: str) -> None:
    result = elmo_command(*arguments)
    assert result.code == 1
    assert result.err.startswith("elmo: error: ") and result.err.count("\n") == 1
    assert message in result.err
    assert not result.out


@pytest.mark.parametrize("place", [0, 2, 3])
def test_debug_shows_the_traceback(place: int) -> None:
    arguments = ["inspect", "/nowhere"]
    arguments.insert(place, "--debug")
    with pytest.raises(elmokit.ElmoError):
        main(arguments)


# -- embed -----------------------------------------------------------------------------------------


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
    with vectors.load(out) as stored:
        assert len(stored) == 60
        assert stored[0].tolist() == elmo.embed("The bank lent money.").tolist()
        assert stored[1].shape == (0, elmo.dim)
        assert list(stored.words(2)) == ["I", "sat", "by", "the", "bank", "."]
        assert stored.signature["model"] == elmo.bilm.fingerprint
    again = elmo_command("embed", "-m", MODEL, "--file", text_file, "--out", out)
    assert again.code == 1 and "exists" in again.err
    assert elmo_command("embed", "-m", MODEL, "--force", "--out", out, "x").code == 0
    assert len(vectors.load(out)) == 1


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
    write = vectors.Writer.write

    def interrupted(self: vectors.Writer, *sentence: object) -> None:
        nonlocal wait
        wait -= 1
        if wait == 0:
            raise KeyboardInterrupt
        write(self, *sentence)  # type: ignore[arg-type]

    monkeypatch.setattr(vectors.Writer, "write", interrupted)
    stopped = elmo_command(*arguments, out)
    assert stopped.code == 130
    assert "the same command continues" in stopped.err
    assert not out.exists()

    monkeypatch.setattr(vectors.Writer, "write", write)
    changed = elmo_command(*arguments, out, "--layers", "top")
    assert changed.code == 1 and "layers" in changed.err
    result = elmo_command(*arguments, out)
    assert result.code == 0
    assert "60 sentences, 24 of them by an earlier run" in result.out
    for a, b in zip(vectors.load(out), vectors.load(whole), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_float16(elmo_command, tmp_path: Path) -> None:
    out = tmp_path / "v.npz"
    elmo_command("embed", "-m", MODEL, "--float16", "--out", out, "The bank")
    assert vectors.load(out)[0].dtype == np.float16


# -- models ------------------------------------------------------------------------------------


def test_models_are_listed_and_searched(elmo_command) -> None:
    assert "original-5.5B" in elmo_command("models").out
    found = elmo_command("models", "BASQUE")
    assert "basque" in found.out and "japanese" not in found.out
    lines = [json.loads(line) for line in elmo_command("models", "--json").out.splitlines()]
    assert {"small", "medium", "original"} <= {line["name"] for line in lines}
    assert next(line for line in lines if line["name"] == "small")["bytes"] > 54_000_000
    assert "no published model" in elmo_command("models", "klingon").out


# -- bench -------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["made up", "file"])
def test_bench_ends_with_json(elmo_command, text_file: Path, source: str) -> None:
    more = ("--file", text_file) if source == "file" else ()
    result = elmo_command("bench", MODEL, "--rounds", 1, "--sentences", 40, *more)
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    assert figures["engine"] == Elmo.load(MODEL).engine
    for scenario in ("one sentence of 20 words", "natural order, one call"):
        assert figures[scenario] > 0
        assert any(line.startswith(scenario) for line in result.out.splitlines())


def test_bench_wants_one_model(elmo_command) -> None:
    assert elmo_command("bench").code == 2
    assert elmo_command("bench", MODEL, "--size", "small").code == 2


# -- inspect and convert ---------------------------------------------------------------------------


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


def test_convert_there_and_back(elmo_command, tmp_path: Path) -> None:
    assert elmo_command("convert", MODEL, tmp_path / "m").code == 0
    assert formats.detect(tmp_path / "m").kind == "native"
    back = elmo_command("convert", tmp_path / "m", tmp_path / "back.hdf5")
    assert back.code == 0
    assert "left behind: the settled state" in back.err
    assert formats.read(tmp_path / "back.hdf5").fingerprint == formats.read(MODEL).fingerprint
    refused = elmo_command("convert", MODEL, tmp_path / "m")
    assert refused.code == 1 and "exists; nothing was written" in refused.err
    assert elmo_command("convert", MODEL, tmp_path / "m", "--force").code == 0
