from __future__ import annotations

from pathlib import Path

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.columns import blocks


def test_blocks(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes("\ufeff\n\na  b\tc \r\n\u00a0 d\n \t\n\n e\nf".encode())
    assert [[tuple(row) for row in block] for block in blocks(path)] == [
        [(f"{path}:3", ["a", "b", "c"]), (f"{path}:4", ["\u00a0", "d"])],
        [(f"{path}:7", ["", "e"]), (f"{path}:8", ["f"])],
    ]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with pytest.raises(FormatError, match="cannot be read"):
        list(blocks(path))
    path.write_bytes(b"a\n\nb\xff\n")
    with pytest.raises(FormatError, match=":3: byte 2 of the line is not UTF-8"):
        list(blocks(path))
