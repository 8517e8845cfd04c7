from __future__ import annotations

from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.tagged import read_tagged


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "tags.tsv"
    path.write_bytes("\nIt\tPRON\tPRP\r\nis\tAUX\tVBZ\n\n\ncafé\tNOUN\tNN\n".encode())
    found = read_tagged(path)
    assert found.sentences == [["It", "is"], ["café"]]
    assert found.tags == {"UPOS": ["PRON", "AUX", "NOUN"], "XPOS": ["PRP", "VBZ", "NN"]}
    assert found.words == ["It", "is", "café"]


def test_other_columns_and_no_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "tags.tsv"
    path.write_text("a b\tX\nc\tY")
    found = read_tagged(path, ["chunk"])
    assert found.sentences == [["a b", "c"]] and found.tags == {"chunk": ["X", "Y"]}


@pytest.mark.parametrize("line", ["word\tNOUN", "word\tNOUN\tNN\tmore", "word NOUN NN", "\tX\tY"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tags.tsv"
    path.write_text(f"It\tPRON\tPRP\n{line}\n")
    with pytest.raises(FormatError, match=r"line 2 .*UPOS and XPOS"):
        read_tagged(path)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_tagged(tmp_path / "nothing.tsv")
    (tmp_path / "empty.tsv").write_text("\n\n")
    with pytest.raises(FormatError, match="no words"):
        read_tagged(tmp_path / "empty.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"caf\xe9\tNOUN\tNN\n")
    with pytest.raises(FormatError, match="UTF-8"):
        read_tagged(tmp_path / "latin.tsv")
