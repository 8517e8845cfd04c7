"""Structured logs: one JSON object per line, without texts, paths of requests or keys.

Of an exception, its type and where it was raised are logged, but not its message, since messages
of errors quote what was found.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import sys
import traceback
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TextIO

from elmokit.threads import BackgroundThread

MOST_WAITING = 10_000
"""Lines that wait to be written at most."""
LOGGER = logging.getLogger("elmokit.serve")
LogFormat = Literal["json", "text", "none"]
"""How a server logs: JSON lines, short lines for people, or not at all."""


def log_event(
    event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: Any
) -> None:
    """Log something that happened.

    Args:
        event: What happened, such as `"request"`.
        level: Level of `logging`.
        error: The exception that caused it, if any.
        fields: Numbers and names that belong to it; never text that a client sent.
    """
    if LOGGER.isEnabledFor(level):
        if error is not None:
            fields |= {"error": type(error).__name__, "trace": _frames(error)}
        LOGGER.log(level, event, extra={"fields": fields})


def set_up_logs(form: LogFormat) -> None:
    """Send the logs of the server, and what uvicorn reports, to stderr."""
    handler: logging.Handler = logging.NullHandler()
    if form != "none":
        handler = _QueuedLines(sys.stderr)
        handler.setFormatter(_JsonLines() if form == "json" else _ShortLines())
    for name in ("elmokit.serve", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    LOGGER.setLevel(logging.INFO)
    warnings.showwarning = _log_warning
    # What uvicorn says beyond warnings, we say ourselves.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Log where a warning comes from, but not what it says, since it may quote a text."""
    where = f"{Path(filename).name}:{lineno}"
    log_event("warning", level=logging.WARNING, category=category.__name__, where=where)


class _QueuedLines(logging.Handler):
    """Writes lines in a thread of its own, so that a reader who is slow or gone stops no request.

    Lines beyond `MOST_WAITING` are dropped, and how many is written as soon as it can be.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        self._thread = BackgroundThread(self._write_lines, "elmo-logs")
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what waits, for at most two seconds."""
        with contextlib.suppress(queue.Full):  # full, and nobody reads: the thread ends with us
            self._lines.put(None, timeout=1)
        self._thread.join(timeout=1)
        super().close()

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                line += f'\n{{"event": "dropped", "lines": {dropped}}}'
            with contextlib.suppress(OSError, ValueError):  # nobody reads any more
                self._stream.write(line + "\n")
                self._stream.flush()


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"time": time, "level": record.levelname.lower(), **_content(record)}
        return json.dumps(entry, default=str)


class _ShortLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        content = _content(record)
        event = content.pop("event")
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        fields = " ".join(f"{name}={value}" for name, value in content.items() if name != "id")
        return f"{time} {event} {fields}".rstrip()


def _content(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", None)
    if fields is None and record.exc_info and (error := record.exc_info[1]) is not None:
        fields = {"error": type(error).__name__, "trace": _frames(error)}
    # Only the first line of what uvicorn says: further lines would be a traceback.
    return {"event": record.getMessage().partition("\n")[0], **(fields or {})}


def _frames(error: BaseException) -> list[str]:
    """Return where an exception was raised: file, line and function of the innermost calls."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames]
