"""The plan of a training run: its settings and its data, so that only the same run is resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import elmokit
from elmokit.elmo import Elmo
from elmokit.errors import InputError, TrainingError
from elmokit.json_text import parse_json
from elmokit.storage import explain_write_errors, write_text
from elmokit.tasks.settings import Settings, with_current_keys
from elmokit.tasks.task import Examples
from elmokit.tasks.trained import TASK_FILE
from elmokit.train import checkpoint

TRAINING, PLAN, LOG = "training", "plan.json", "epochs.jsonl"
"""Subdirectory of a run's files; in it, what the run is, and one line per epoch."""
COMPARED = ("settings", "preset", "biLM", "data")
"""Keys of the plan that must be the same when a run is resumed."""


def read_plan(directory: Path) -> dict[str, Any]:
    """Return the plan of the run in a directory: its settings, and checksums of biLM and data."""
    try:
        plan: dict[str, Any] = parse_json((directory / TRAINING / PLAN).read_text(encoding="utf-8"))
        return {**with_current_keys(plan), "settings": dict(plan["settings"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise TrainingError(
            f"there is no run to resume in {directory}; start one by leaving out --resume"
        ) from None


def begin_run(
    directory: Path,
    settings: Settings,
    elmo: Elmo | None,
    data: Sequence[Examples[Any]],
    resume: bool,
) -> None:
    """Write the plan of a run, or compare it with that of the run to resume."""
    plan = {
        "elmokit": elmokit.__version__,
        **settings.to_full_dict(),
        "biLM": None if elmo is None else elmo.bilm.fingerprint,
        "data": [_digest(examples) for examples in data],
    }
    if resume:
        begun = read_plan(directory)
        if any(begun.get(name) != plan[name] for name in COMPARED):
            raise TrainingError(
                f"the run in {directory} was started with other settings or data "
                f"({_describe_difference(begun, plan)}); give the same, or another directory"
            )
        return
    path = directory / TRAINING / PLAN
    if (directory / TASK_FILE).exists() or path.exists():
        raise InputError(
            f"{directory} already has a task model or a run; nothing was done. Resume the run "
            "(--resume), or give another directory"
        )
    with explain_write_errors(directory):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(plan, indent=1) + "\n")


def _describe_difference(begun: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    before, now = begun["settings"], plan["settings"]
    names = [name for name in now if before.get(name) != now[name]]
    if names:
        return ", ".join(f"{name}: {before.get(name)}, now {now[name]}" for name in names)
    different = [name for name in COMPARED if begun.get(name) != plan[name]]
    return f"other {', other '.join(different)}"


def _digest(examples: Examples[Any]) -> str:
    """Return a checksum of all texts and labels."""
    digest = hashlib.sha256()
    for example in examples.items:
        digest.update(repr(replace(example, where="")).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@contextmanager
def undo_failed_start(directory: Path) -> Iterator[None]:
    """Remove the plan of a run that fails before its first checkpoint, so that it can start again.

    A plan that was there before is left alone, and so is that of a run which was interrupted: it
    can be resumed.
    """
    path = directory / TRAINING / PLAN
    existed = path.exists()
    try:
        yield
    except Exception:
        if not existed and checkpoint.find_newest(path.parent) is None:
            with suppress(OSError):  # whatever else is in the directories stays
                path.unlink(missing_ok=True)
                path.parent.rmdir()
                directory.rmdir()
        raise
