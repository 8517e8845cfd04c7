"""What a run noted on its way: a line of JSON for every so many steps, and for every evaluation.

TensorBoard gets the same numbers if it is installed. Knows nothing about networks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.text.files import write_text

METRICS = "metrics.jsonl"


class Metrics:
    """An open file of lines, each with at least the step it belongs to."""

    def __init__(self, directory: Path, step: int = 0) -> None:
        """Goes on from a step: what was noted after it, or at the end, will be noted again."""
        self.path = directory / METRICS
        kept = [
            line
            for line in (read_metrics(self.path) if step else ())
            if line["step"] <= step and not line.get("end")
        ]
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = self.path.open("a", encoding="utf-8")
        self._board = _tensorboard(directory, step)

    def note(self, step: int, **facts: Any) -> None:
        """Write a line."""
        self._file.write(json.dumps({"step": step, **facts}) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in facts.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """No more lines."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file; the last one may have been cut off by the end of its process."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        try:
            if line:
                yield json.loads(line)
        except ValueError:
            if number < len(lines):
                raise FormatError(f"{path}, line {number} is no JSON: {line[:40]!r}") from None


def _tensorboard(directory: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(directory / "tensorboard"), purge_step=step + 1)  # type: ignore[no-untyped-call,unused-ignore]
