"""The text to fine-tune on: part of it is always held out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.train.toy import toy_text

from elmokit.errors import InputError
from elmokit.text.vocabulary import Vocabulary
from elmokit.train.text_source import TextSource, build_source_corpus

VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", "ant", "bee"])


def test_some_is_held_out_however_little_there_is(tmp_path: Path) -> None:
    text = tmp_path / "small.txt"
    text.write_text(toy_text(30), encoding="utf-8")
    corpus = build_source_corpus(
        TextSource([str(text)], "tokenized"), tmp_path / "corpus", VOCABULARY
    )
    assert corpus.valid is not None and corpus.valid.sentences >= 3
    assert corpus.vocabulary == VOCABULARY
    text.write_text("one line .\n")
    with pytest.raises(InputError, match="--valid"):
        build_source_corpus(TextSource([str(text)], "tokenized"), tmp_path / "other", VOCABULARY)
    valid = tmp_path / "valid.txt"
    valid.write_text("the gene\n")
    source = TextSource([str(text)], "tokenized", valid=[str(valid)])
    corpus = build_source_corpus(source, tmp_path / "third", VOCABULARY)
    assert corpus.valid is not None and corpus.valid.tokens == 2 and corpus.train.tokens == 3
