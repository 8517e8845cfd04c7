"""`elmo perplexity` as a user meets it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN, random_bilm, small_config

import elmokit
from elmokit.cli.perplexity import command
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError, InputError, WeightsError
from elmokit.lm import perplexity
from elmokit.text.vocabulary import Vocabulary

TEXT = "I sat by the river. The bank lent me money!\n\nNobody knows why.\n"
SENTENCES = [
    "I sat by the river .".split(),
    "The bank lent me money !".split(),
    "Nobody knows why .".split(),
]


@pytest.fixture
def model(tmp_path: Path) -> str:
    words = "<S> </S> <UNK> the . bank I river money sat".split()
    bilm = random_bilm(small_config())
    random = np.random.default_rng(3)
    softmax = {
        "softmax.weight": random.normal(size=(len(words), 6)).astype(np.float32),
        "softmax.bias": random.normal(size=len(words)).astype(np.float32),
    }
    speaking = replace(bilm, weights={**bilm.weights, **softmax}, vocabulary=Vocabulary(words))
    Elmo(speaking).save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Call the command; what it prints on stdout, all of it and the last line as JSON."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object, stdin: bytes = b"") -> tuple[str, dict]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        command.main([str(argument) for argument in arguments], standalone_mode=False)
        out, err = capsys.readouterr()
        assert err == ""
        return out, json.loads(out.splitlines()[-1])

    return run


def test_running_text(call, model: str, text: Path) -> None:
    out, found = call(model, text)
    expected = perplexity(Elmo.load(model), SENTENCES)
    assert found == expected.to_dict()
    assert found["sentences"] == 3 and found["words"] == 16 and found["tokens"] == 19
    assert found["oov"] == 8 / 16
    names = "forward backward mean tokens words sentences oov signature".split()
    assert list(found) == names
    for name in names[:-1]:
        assert name in out.rpartition("{")[0], "the table says it too"
    for value in (found["forward"], found["backward"], found["mean"]):
        assert f"{value:,.2f}" in out.splitlines()[1]
    assert "50.00%" in out and "vocabulary of 10" in out


def test_the_signature(call, model: str, text: Path) -> None:
    _, found = call(model, text)
    signature = found["signature"]
    read = "".join(" ".join(words) + "\n" for words in SENTENCES)
    assert signature["data"] == hashlib.sha256(read.encode()).hexdigest()
    assert signature["model"] == Elmo.load(model).bilm.fingerprint
    assert signature["tokens"] == 19
    assert signature["state"] == "settled"
    assert signature["version"] == elmokit.__version__


def test_json_alone(call, model: str, text: Path) -> None:
    out, found = call(model, text, "--json")
    assert len(out.splitlines()) == 1 and found["sentences"] == 3


def test_lines_and_words(call, model: str, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("I sat. I sat.\n\nthe river.", encoding="utf-8")
    assert call(model, path)[1]["sentences"] == 3
    _, lines = call(model, path, "--lines")
    assert (lines["sentences"], lines["words"]) == (2, 9)
    _, words = call(model, path, "--tokenized")
    assert (words["sentences"], words["words"]) == (2, 6)


@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_compressed_text_is_the_same_text(call, model: str, text: Path, suffix, pack) -> None:
    packed = text.with_suffix(f".txt.{suffix}")
    packed.write_bytes(pack(text.read_bytes()))
    assert call(model, packed)[1] == call(model, text)[1]


def test_several_files_are_one_text(call, model: str, text: Path) -> None:
    _, found = call(model, text, text)
    assert found == perplexity(Elmo.load(model), SENTENCES * 2).to_dict()


def test_stdin(call, model: str, text: Path) -> None:
    assert call(model, "-", stdin=text.read_bytes())[1] == call(model, text)[1]


def test_a_text_of_many_blocks(
    call, model: str, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmokit.train.text_reader.BLOCK_BYTES", 7)
    assert call(model, text)[1] == perplexity(Elmo.load(model), SENTENCES).to_dict()


def test_so_many_words(call, model: str, text: Path) -> None:
    assert call(model, text, "--words", 7)[1]["words"] == 12
    assert call(model, text, "--words", 7000)[1]["words"] == 16


@pytest.mark.parametrize("state", ["settled", "zero", "carry"])
def test_the_state(call, model: str, text: Path, state: str) -> None:
    _, found = call(model, text, "--state", state)
    assert found == perplexity(Elmo.load(model, state=state), SENTENCES).to_dict()
    assert found["signature"]["state"] == state


def test_threads_change_nothing(call, model: str, text: Path) -> None:
    assert call(model, text, "--threads", 1)[1] == call(model, text, "--threads", 2)[1]


def test_a_corpus_stands_for_its_held_out_text(call, model: str, text: Path, tmp_path) -> None:
    from elmokit.train.build import CorpusOptions, build_corpus

    train = tmp_path / "train.txt"
    train.write_text("More of it.\n" + TEXT, encoding="utf-8")
    build_corpus([str(train)], tmp_path / "corpus", CorpusOptions(), valid=[str(text)], processes=1)
    assert call(model, tmp_path / "corpus")[1] == call(model, text)[1]


def test_a_corpus_without_held_out_text(call, model: str, text: Path, tmp_path: Path) -> None:
    from elmokit.train.build import CorpusOptions, build_corpus

    build_corpus([str(text)], tmp_path / "corpus", CorpusOptions(held_out=0), processes=1)
    with pytest.raises(InputError, match="without held-out text"):
        call(model, tmp_path / "corpus")


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file(call, model: str, tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.txt"
    path.write_text(content)
    with pytest.raises(InputError, match="no words"):
        call(model, path)


def test_no_file(call, model: str, tmp_path: Path) -> None:
    with pytest.raises(ElmoError, match="does not exist"):
        call(model, tmp_path / "none.txt")


def test_a_checkpoint_of_tensorflow_has_all_it_takes(call, text: Path) -> None:
    checkpoint = GOLDEN / "tf" / "trained"
    _, found = call(checkpoint, text, "--state", "carry")
    assert found["sentences"] == 3 and 1 < found["mean"] < 1e6
    assert found == perplexity(Elmo.load(checkpoint, state="carry"), SENTENCES).to_dict()


def test_it_needs_no_torch(model: str, text: Path) -> None:
    code = f"""
import sys
sys.modules["torch"] = None      # importing it raises ImportError
from elmokit.cli.perplexity import command
command.main([{model!r}, {str(text)!r}, "--json"], standalone_mode=False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["words"] == 16


def test_a_model_that_cannot_speak(call, text: Path) -> None:
    with pytest.raises(WeightsError, match=r"no softmax.*elmo finetune"):
        call(GOLDEN / "models" / "plain", text)


@pytest.mark.parametrize(
    "arguments", [["--lines", "--tokenized"], ["--words", "0"], ["--state", "none"]]
)
def test_wrong_use(call, model: str, text: Path, arguments: list[str]) -> None:
    import click

    with pytest.raises(click.UsageError):
        call(model, text, *arguments)
