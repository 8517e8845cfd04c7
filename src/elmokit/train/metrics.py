"""The metrics of a run: one line of JSON every few steps and for every evaluation.

TensorBoard gets the same numbers if it is installed. Knows nothing about networks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.json_text import parse_json
from elmokit.storage import write_text

METRICS = "metrics.jsonl"
"""Name of the file with the metrics."""


class MetricsLog:
    """An open metrics file; each line has at least the step it belongs to."""

    def __init__(self, directory: Path, step: int = 0) -> None:
        """Open the file of a run that continues after a step.

        Lines of later steps, and of the end of an earlier session, are removed, since they will be
        written again.
        """
        self.path = directory / METRICS
        """The file."""
        lines = [
            line
            for line in (read_metrics(self.path) if step else ())
            if line["step"] <= step and not line.get("end")
        ]
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in lines))
        self._file = self.path.open("a", encoding="utf-8")
        self._tensorboard = _open_tensorboard(directory, step)

    def write(self, step: int, **values: Any) -> None:
        """Write a line of named values."""
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()
        if self._tensorboard is not None:
            for name, value in values.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self._tensorboard.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a metrics file.

    There are none if the file does not exist. An incomplete last line is skipped, since a process
    may have died while it wrote it.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        try:
            if line:
                yield parse_json(line)
        except ValueError:
            if number < len(lines):
                raise FormatError(
                    f"{path}, line {number} is not JSON: {line[:40]!r}; expected a JSON object"
                ) from None


def _open_tensorboard(directory: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(directory / "tensorboard"), purge_step=step + 1)  # type: ignore[no-untyped-call,unused-ignore]
