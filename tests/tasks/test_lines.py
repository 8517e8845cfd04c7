"""Lines of a file with their places."""

from pathlib import Path

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.lines import placed


def test_blank_lines_count_but_do_not_come(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff one\r\n\r\n \u00e9 \n\nlast".encode())
    assert list(placed(path)) == [(f"{path}:1", "one"), (f"{path}:3", "é"), (f"{path}:5", "last")]


def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nb\xffd\n")
    with pytest.raises(FormatError, match=r"a\.txt:2: byte 2 of the line is not UTF-8"):
        list(placed(path))
    with pytest.raises(FormatError, match="cannot be read: Is a directory"):
        list(placed(tmp_path))
