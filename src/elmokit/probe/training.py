"""How a model was trained, as a measurement: perplexity and loss by words read.

Made of the lines that a run notes (training/metrics.jsonl in its directory).
"""

from __future__ import annotations

import json
from pathlib import Path

from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.probe.results import Json, Picture, measurement, signature
from elmokit.probe.tables import Table
from elmokit.train.curve import picture, thinned

NOTES = "training/metrics.jsonl"


def training(elmo: Elmo, run: str | Path) -> Json:
    """The measurement of the run in a directory."""
    path = Path(run).expanduser() / NOTES
    if not path.is_file():
        raise InputError(f"{run} has no {NOTES}; expected the directory of `elmo pretrain`")
    noted = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            noted.append({str(name): value for name, value in json.loads(line).items()})
        except (ValueError, AttributeError):
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected a JSON object") from None
    return measurement("training", signature(elmo, {"run": path}), noted=thinned(noted))


def tables(found: Json) -> list[Table]:
    """Where it began and where it ended."""
    measured = [line for line in found["noted"] if "forward" in line]
    rows = (
        [
            [when, f"{line['tokens']:,}", f"{line['forward']:.1f}", f"{line['backward']:.1f}"]
            for when, line in (("first", measured[0]), ("last", measured[-1]))
        ]
        if measured
        else []
    )
    columns = ["measurement", "words read", "forward perplexity", "backward perplexity"]
    return [Table("Held-out perplexity in training", columns, rows)]


def pictures(found: Json) -> list[Picture]:
    """The curve."""
    return [Picture("", picture(found["noted"], "Training"))]


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember."""
    measured = [line for line in found["noted"] if "forward" in line]
    if not measured:
        return None
    last = measured[-1]
    mean = (last["forward"] * last["backward"]) ** 0.5
    return f"{mean:.1f}", f"held-out perplexity after {last['tokens'] / 1e6:.3g} M words"
