"""Calling the command line as a user does."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from elmokit.cli import main


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def elmo_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Call `elmo` with arguments, and stdin if given."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(exit.value.code or 0), out, err)

    return call


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The bank lent money.\n\nI sat by the bank.\n" * 20, encoding="utf-8")
    return path
