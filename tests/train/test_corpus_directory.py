"""The directory of a corpus is complete or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.test_staging import die_before

from elmokit.errors import InputError
from elmokit.train.build import CorpusOptions, build_corpus
from elmokit.train.corpus import Corpus


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("She went to the bank. He sat by the river.\nThe bank was closed.\n")
    return path


def build(text: Path, out: Path, *, size: int | None = None, force: bool = False) -> Corpus:
    options = CorpusOptions(size=size, held_out=0)
    return build_corpus([str(text)], out, options, processes=1, force=force)


def test_an_existing_directory_is_refused(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    first = build(text, out)  # an empty one is not
    with pytest.raises(InputError, match=r"out exists, .*--force"):
        build(text, out, size=8)
    assert Corpus.open(out).fingerprint == first.fingerprint
    assert build(text, out, size=8, force=True).fingerprint != first.fingerprint
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").touch()
    with pytest.raises(InputError, match="not a corpus, so --force does not replace it"):
        build(text, mine, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out", "text.txt"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="simulates kills with os.fork")
def test_a_killed_replacement_leaves_the_old_one_or_the_new_one(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    new = build(text, tmp_path / "new", size=8).fingerprint
    old = build(text, out).fingerprint
    seen, step = [], 0
    while True:
        killed = die_before(step, lambda: build(text, out, size=8, force=True))
        seen.append(Corpus.open(out).fingerprint)
        assert seen[-1] in (old, new)
        build(text, out, force=True)
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == ["new", "out", "text.txt"]
        assert not [path for path in out.iterdir() if path.name.startswith(".")]
        if not killed:
            break
        step += 2
    assert set(seen) == {old, new}
