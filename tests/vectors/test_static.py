from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.vectors import static
from elmokit.vectors.static import has_glove, read_static


def test_a_file_in_text_form(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"3 2\nthe 1 2\n. . 3 4.5\nna\xefve 5 6\n")
    words, vectors = read_static(path)
    assert words == ["the", ". .", "na�ve"]
    np.testing.assert_array_equal(vectors, np.array([[1, 2], [3, 4.5], [5, 6]], np.float32))
    packed = tmp_path / "vectors.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_static(packed)[0] == words


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2\nb 1\n", ":2: found 'b 1'"),
        ("a 1 x\n", ":1:"),
        ("", "no vectors"),
        ("a 1 nan", ":1"),
    ],
)
def test_a_wrong_file(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content)
    with pytest.raises(FormatError, match=message):
        read_static(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of word vectors at"):
        read_static(tmp_path / "none.txt")


def test_glove_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == static.GLOVE_PACKAGE else find(name),
    )
    assert not has_glove()
    with pytest.raises(MissingExtra, match=r"elmokit\[glove\]"):
        read_static("glove")


def test_glove() -> None:
    if not has_glove():
        pytest.skip("needs GloVe: pip install 'elmokit[glove]'")
    words, vectors = read_static("glove")
    assert len(words) == len(vectors) == 400_000 and words[0] == "the"
