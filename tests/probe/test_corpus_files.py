from __future__ import annotations

from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.probe.corpus_files import CorpusSentences, limit_words, list_corpus_files, open_text

SENTENCES = [["One", "bank", "."], ["Two", "."]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(" ".join(words) for words in SENTENCES) + "\n")
    return file


def test_files_are_named(path: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.txt"
    again.write_text("Three .\n")
    assert list_corpus_files([tmp_path], "then") == {"then": str(again), "then 2": str(path)}
    made = tmp_path / "corpus"
    made.mkdir()
    (made / "corpus.json").write_text("{}")
    assert list_corpus_files([made], "then") == {"then": str(made)}
    with pytest.raises(InputError, match=r"then .* stdin"):
        list_corpus_files(["-"], "then")


def test_sentences_can_be_read_again(path: Path) -> None:
    text = CorpusSentences([path], form="tokenized", max_words=2)
    assert list(text) == list(text) == SENTENCES[:1]
    assert list(limit_words(SENTENCES, None)) == SENTENCES


def test_files_or_lists_of_words(path: Path) -> None:
    def read(text: object) -> tuple[list[list[str]], dict[str, str]]:
        sentences, hashes = open_text(
            text,  # type: ignore[arg-type]
            "now",
            form="tokenized",
            column=None,
            max_words=None,
        )
        return [list(words) for words in sentences], hashes

    for text in (path, str(path), [path], SENTENCES, (tuple(words) for words in SENTENCES)):
        sentences, hashes = read(text)
        assert sentences == SENTENCES and list(hashes) == ["now"]
    assert read(SENTENCES)[1] == read(path)[1], "one line per sentence, a space between words"
    with pytest.raises(InputError, match="mixes"):
        read([path, ["One", "."]])


def test_documents_are_marked(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_bytes("\ufeffThey came. We left.\nShe stayed.\n \r\n\nHe ran.".encode())
    two.write_bytes(b"It fell.\n\n")
    marked = list(CorpusSentences([one, two], mark_documents=True))
    assert [" ".join(words) for words in marked] == [
        *("They came .", "We left .", "She stayed .", "", "He ran .", ""),
        *("It fell .", "", ""),
    ]
    assert [words for words in marked if words] == list(CorpusSentences([one, two]))
    one.write_bytes(b"A b\n\nC \xff\n")
    with pytest.raises(InputError, match=r"one.txt, line 3 is not UTF-8"):
        list(CorpusSentences([one], mark_documents=True))


def test_rows_of_a_table_are_documents(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"text": ["They came. We left.", "He ran."]}), path)
    marked = list(CorpusSentences([path], mark_documents=True))
    documents = "\n".join(" ".join(words) for words in marked).split("\n\n")
    assert [each.strip() for each in documents if each.strip()] == [
        "They came .\nWe left .",
        "He ran .",
    ]
