"""`elmo corpus` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elmokit.cli.corpus import command
from elmokit.errors import InputError
from elmokit.train.corpus import Corpus


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"Sentence {i} is here. So am I.\n" for i in range(400)))
    return path


def call(*arguments: object, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, ["--processes", "1", *map(str, arguments)], input=stdin)


def test_summary_for_a_person(text: Path, tmp_path: Path) -> None:
    result = call(text, "--out", tmp_path / "out", "--size", 8, "--held-out", 10)
    assert result.exit_code == 0, result.output
    corpus = Corpus.open(tmp_path / "out")
    assert corpus.valid is not None
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines()[1:])
    assert rows["sentences"] == f"{corpus.train.sentences}"
    assert rows["words"].startswith(f"{corpus.train.tokens:,}, ")
    oov = corpus.metadata["train"]["oov_rate"]
    assert rows["vocabulary"] == f"8 words, {1 - oov:.2%} of the text ({oov:.2%} <UNK>)"
    assert (
        f"held out    {corpus.valid.tokens} words in {corpus.valid.sentences} sentences"
        in result.stdout
    )
    assert rows["time"].endswith("words/s")
    assert "unlisted" not in rows and "cut" not in rows and "warning" not in rows
    assert result.stderr == "", "no progress bar where nobody looks"


def test_summary_of_what_is_odd(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("a line that\nis wrapped and\nwrapped again,\nlike this\n" + "a " * 500)
    result = call(path, "--out", tmp_path / "out", "--words", 9, "--held-out", 0)
    assert "unlisted    4 words are read as <UNK>, since --words is 9" in result.stdout
    assert "1 sentences of more than 400 words" in result.stdout
    assert "if the text is wrapped, give --wrapped" in result.stdout
    assert "held out    nothing" in result.stdout
    result = call(path, "--out", tmp_path / "wrapped", "--wrapped")
    assert "--wrapped" not in result.stdout


def test_forms_and_vocabulary(tmp_path: Path) -> None:
    for i in (1, 2):
        (tmp_path / f"news.en-0000{i}-of-00002").write_text("Don't split me. Please .\n")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n.\n")
    out = tmp_path / "out"
    result = call(
        tmp_path / "news.en-*", "--tokenized", "--vocabulary", tmp_path / "vocab.txt", "-o", out
    )
    assert result.exit_code == 0, result.output
    corpus = Corpus.open(out)
    assert corpus.train.lengths.tolist() == [5, 5]
    assert "Don't" in corpus.words
    assert list(corpus.vocabulary) == ["<S>", "</S>", "<UNK>", "."]
    assert call(tmp_path / "news.en-*", "--lines", "-o", out, "--force").exit_code == 0
    assert Corpus.open(out).train.lengths.tolist() == [7, 7]


def test_standard_input(tmp_path: Path) -> None:
    result = call("-", "-o", tmp_path / "out", stdin="One sentence. Another one.\n")
    assert result.exit_code == 0, result.output
    corpus = Corpus.open(tmp_path / "out")
    assert corpus.train.sentences == 2
    assert corpus.metadata["sources"][0]["name"] == "stdin"


def test_parquet_column_and_valid_files(text: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": ["Some text."], "b": ["Other."]}), path)
    result = call(
        path, "--column", "b", "--valid", text, "--valid", tmp_path / "x*t", "-o", tmp_path / "out"
    )
    assert isinstance(result.exception, InputError), "x*t matches the same file: all is held out"
    result = call(path, "--column", "b", "--valid", text, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    corpus = Corpus.open(tmp_path / "out")
    assert corpus.valid is not None
    assert (corpus.train.tokens, corpus.valid.sentences) == (2, 800)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lines", "--tokenized"], "give --lines or --tokenized"),
        (["--valid", "x", "--held-out", "1"], "give --valid or --held-out"),
        (["--vocabulary", "x", "--size", "10"], "--vocabulary is used unchanged"),
        (["--held-out", "60"], "60"),
        (["--size", "3"], "3"),
    ],
)
def test_wrong_use(text: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    result = call(text, "-o", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_help_has_examples() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.stdout.count("elmo corpus ") >= 3
