"""The progress display: bars on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import pytest

from elmokit import progress
from elmokit.progress import ProgressDisplay, ignore_progress


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 10.0, 31.0, 40.0, 62.0, 100.0, 131.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with ProgressDisplay() as display:
        for done in range(5):
            display.update("reading", done, 8)
        count = display.counter("counting", key="words")
        for _ in range(2):
            count(3, None)
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "25.0%  reading, 0:01:33 left",
        "50.0%  reading, 0:01:02 left",
        "words: counting",
    ]


def test_lines_can_be_turned_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with ProgressDisplay(lines=False) as display:
        display.update("reading", 1, 2)
        display.message("a message stays")
    assert capsys.readouterr().err == "a message stays\n"
    ignore_progress(1, None)


def test_on_a_terminal_there_are_bars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "is_terminal", lambda: True)
    with ProgressDisplay(keep=True, binary=True) as display:
        display.update("reading", 1, 2, key="a")
        display.update("reading", 2, 2, key="a")
        display.message("[a message] stays")
    err = capsys.readouterr().err
    assert "reading" in err and "[a message] stays" in err


def test_amounts_of_bytes_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 31.0, 62.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with ProgressDisplay(binary=True) as display:
        for done in (0, 90_000_000, 180_000_000):
            display.update("", done, 360_000_000, key="weights.hdf5")
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "25.0%  weights.hdf5: 90.0 of 360.0 MB, 0:01:33 left",
        "50.0%  weights.hdf5: 180.0 of 360.0 MB, 0:01:02 left",
    ]
