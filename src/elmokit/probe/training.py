"""The training curve of a model as a measurement: perplexity and loss by words read.

It is read from the metrics file that `elmo pretrain` keeps in the directory of a run.
"""

from __future__ import annotations

from pathlib import Path

from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.json_text import parse_json
from elmokit.probe.results import Figure, Measurement, ResultRow, make_measurement, make_signature
from elmokit.probe.tables import Table
from elmokit.text.files import read_lines
from elmokit.train.curve import render_curve, thin_metrics

METRICS_FILE = "training/metrics.jsonl"
"""Path of the metrics file within the directory of a run."""


def training_measurement(elmo: Elmo, run: str | Path) -> Measurement:
    """Return the training curve of a model.

    Args:
        elmo: The model that came out of the run.
        run: Directory of the training run.
    """
    path = Path(run).expanduser() / METRICS_FILE
    if not path.is_file():
        raise InputError(f"{run} has no {METRICS_FILE}; expected the directory of `elmo pretrain`")
    metrics = []
    for where, line in read_lines(path):
        try:
            metrics.append({str(name): value for name, value in parse_json(line).items()})
        except (ValueError, AttributeError):
            raise FormatError(f"{where}: found {line[:60]!r}; expected a JSON object") from None
    return make_measurement(
        "training", make_signature(elmo, {"run": path}), noted=thin_metrics(metrics)
    )


def render_tables(measurement: Measurement) -> list[Table]:
    """Return a table of the first and the last held-out perplexity."""
    evaluations = _evaluations(measurement)
    rows = (
        [
            [when, f"{line['tokens']:,}", f"{line['forward']:.1f}", f"{line['backward']:.1f}"]
            for when, line in (("first", evaluations[0]), ("last", evaluations[-1]))
        ]
        if evaluations
        else []
    )
    columns = ["evaluation", "words read", "forward perplexity", "backward perplexity"]
    return [Table("Held-out perplexity during training", columns, rows)]


def render_figures(measurement: Measurement) -> list[Figure]:
    """Return the training curve as a figure."""
    return [Figure("", render_curve(measurement["noted"], "Training"))]


def headline(measurement: Measurement) -> tuple[str, str] | None:
    """Return the last held-out perplexity, the mean of both directions."""
    evaluations = _evaluations(measurement)
    if not evaluations:
        return None
    last = evaluations[-1]
    mean = (last["forward"] * last["backward"]) ** 0.5
    return f"{mean:.1f}", f"held-out perplexity after {last['tokens'] / 1e6:.3g} million words"


def _evaluations(measurement: Measurement) -> list[ResultRow]:
    """Return the lines of the metrics that have held-out perplexities."""
    return [line for line in measurement["noted"] if "forward" in line]
