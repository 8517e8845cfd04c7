"""Advice: one line where a corpus or a run is likely to disappoint, and none where it is not."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from elmokit.train.advice import advise_on_corpus, advise_on_run
from elmokit.train.budget import Budget
from elmokit.train.build import CorpusOptions, build_corpus
from elmokit.train.corpus import Corpus


def build(tmp_path: Path, text: str, **options: object) -> Corpus:
    (tmp_path / "text.txt").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build_corpus(
            [str(tmp_path / "text.txt")],
            tmp_path / "corpus",
            CorpusOptions(**options),  # type: ignore[arg-type]
            processes=1,
        )


LINES = "\n".join(f"Line {k} has its own words , w{k} and v{k} ." for k in range(300))


def test_wrapped_text_without_blank_lines(tmp_path: Path) -> None:
    (advice,) = advise_on_corpus(build(tmp_path, LINES, form="wrapped", size=5000))
    assert "the text is 1 paragraph" in advice and "leave out --wrapped" in advice


def test_too_few_lines_to_hold_any_out(tmp_path: Path) -> None:
    (advice,) = advise_on_corpus(build(tmp_path, LINES, held_out=0.0001, size=5000))
    assert "--held-out 2 " in advice


def test_a_small_vocabulary(tmp_path: Path) -> None:
    (advice,) = advise_on_corpus(build(tmp_path, LINES, held_out=5, size=12))
    assert "of the words are outside the vocabulary" in advice and "larger: --size" in advice


def test_none_is_needed(tmp_path: Path) -> None:
    corpus = build(tmp_path, LINES, held_out=5, size=5000)
    assert advise_on_corpus(corpus) == []
    assert advise_on_run(corpus, Budget(epochs=0.5), 100) == []
    assert advise_on_run(corpus, Budget(minutes=2), 10_000) == []


def test_a_run_that_read_a_part_of_the_text(tmp_path: Path) -> None:
    corpus = build(tmp_path, LINES, held_out=5, size=5000)
    train = corpus.metadata["train"]
    tokens = round(0.15 * (train["tokens"] + train["sentences"]))  # as epochs are counted
    (advice,) = advise_on_run(corpus, Budget(minutes=2), tokens)
    assert "0.15 of the text" in advice and "--minutes 14 " in advice


def test_a_run_without_held_out_text(tmp_path: Path) -> None:
    corpus = build(tmp_path, LINES, held_out=0, size=5000)
    (advice,) = advise_on_run(corpus, Budget(epochs=2), 10_000)
    assert "no held-out text" in advice


def test_building_warns(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(LINES)
    with pytest.warns(UserWarning, match="outside the vocabulary"):
        build_corpus(
            [str(tmp_path / "text.txt")],
            tmp_path / "corpus",
            CorpusOptions(size=12, held_out=5),
            processes=1,
        )
