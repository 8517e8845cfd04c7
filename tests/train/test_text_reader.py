"""Reading text files and corpora as sentences."""

from __future__ import annotations

from pathlib import Path

from tests.train.toy import toy_corpus

from elmokit.train.text_reader import TextReader, is_corpus


def test_sentences_of_files_and_corpora(tmp_path: Path) -> None:
    corpus = toy_corpus(tmp_path)
    assert corpus.valid is not None
    lines = [line.split() for line in (tmp_path / "train.txt").read_text().splitlines()]
    reader = TextReader([str(tmp_path / "train.txt")], "tokenized")
    assert list(reader) == lines
    assert reader.position == reader.size == (tmp_path / "train.txt").stat().st_size
    held_out = TextReader([str(corpus.path)], "tokenized")
    assert held_out.size is None
    assert sum(map(len, held_out)) == corpus.valid.tokens
    assert is_corpus(corpus.path) and not is_corpus(tmp_path)


def test_wrapped_paragraphs(tmp_path: Path) -> None:
    """A sentence may go on in the next line."""
    path = tmp_path / "text.txt"
    path.write_text("One sentence\nover two lines.\n\nAnother one.\n")
    assert list(TextReader([str(path)], "wrapped")) == [
        ["One", "sentence", "over", "two", "lines", "."],
        ["Another", "one", "."],
    ]
