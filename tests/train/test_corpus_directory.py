"""The directory of a corpus is complete or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.train import corpus_directory
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


def test_a_failed_exchange_leaves_the_old_one(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    first = build(text, out)
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(corpus_directory.Path, "rename", fails)
    with pytest.raises(OSError, match="no"):
        build(text, out, size=8, force=True)
    assert Corpus.open(out).fingerprint == first.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "text.txt"]
