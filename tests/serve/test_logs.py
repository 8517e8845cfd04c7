"""Logs that nobody reads."""

from __future__ import annotations

import contextlib
import logging
import os
import time

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")

from elmokit.serve.logs import MOST_WAITING, _JsonLines, _QueuedLines


def test_a_pipe_that_nobody_reads_blocks_nobody() -> None:
    reader, writer = os.pipe()
    stream = os.fdopen(writer, "w")
    handler = _QueuedLines(stream)
    handler.setFormatter(_JsonLines())
    record = logging.makeLogRecord({"msg": "request " + "x" * 200, "levelno": logging.INFO})
    began = time.monotonic()
    for _ in range(MOST_WAITING + 2000):
        handler.emit(record)
    assert time.monotonic() - began < 30  # it would never end
    assert handler._dropped > 0
    os.close(reader)  # and one that nobody can read any more is no error
    handler.close()
    handler._thread.join(timeout=30)
    assert not handler._thread.is_alive()
    with contextlib.suppress(BrokenPipeError):
        stream.close()
