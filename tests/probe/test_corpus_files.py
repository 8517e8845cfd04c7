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
