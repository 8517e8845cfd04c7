"""Lines and columns of dataset files, with their places."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from elmokit.errors import ElmoError, FormatError
from elmokit.tasks.lines import column_blocks, nonblank_lines


def test_blank_lines_count_but_are_not_returned(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff one\r\n\r\n \u00e9 \n\nlast".encode())
    assert list(nonblank_lines(path)) == [
        (f"{path}:1", "one"),
        (f"{path}:3", "é"),
        (f"{path}:5", "last"),
    ]


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\n\ntwo\n"))
    assert list(nonblank_lines(path)) == [(f"{path}:1", "one"), (f"{path}:3", "two")]


def test_columns(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes("\ufeff\n\na  b\tc \r\n\u00a0 d\n \t\n\n e\nf".encode())
    assert [[tuple(row) for row in block] for block in column_blocks(path)] == [
        [(f"{path}:3", ["a", "b", "c"]), (f"{path}:4", ["\u00a0", "d"])],
        [(f"{path}:7", ["", "e"]), (f"{path}:8", ["f"])],
    ]


@pytest.mark.parametrize("read", [nonblank_lines, column_blocks])
def test_what_cannot_be_read_is_reported_with_its_place(tmp_path: Path, read) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n\nb\xffd\n")
    with pytest.raises(ElmoError, match=r"a\.txt, line 3 is not UTF-8 \(byte 0xff at 1\)"):
        list(read(path))
    with pytest.raises(FormatError, match="cannot be read: Is a directory"):
        list(read(tmp_path))
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        list(read(tmp_path / "missing"))
