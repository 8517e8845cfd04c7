"""Where a run stands, on disk: all that it needs to go on as if it had never stopped.

A checkpoint is a directory `step-00001234` with state.safetensors and state.json. It is written
under another name and renamed when it is complete, so whatever moment the process dies at, the
newest directory of that name is whole. Knows nothing about networks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import FormatError

ARRAYS, FACTS = "state.safetensors", "state.json"
KEPT = 2
"""Older ones are deleted."""


def save(directory: Path, step: int, arrays: Mapping[str, Tensor], facts: dict[str, Any]) -> None:
    """Write a checkpoint and forget old ones. A step that has one already keeps it."""
    from safetensors.numpy import save_file

    there, stage = directory / f"step-{step:08d}", directory / f".step-{step:08d}"
    if there.exists():
        return
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    plain = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in arrays.items()}
    save_file(plain, stage / ARRAYS)
    (stage / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for name in (ARRAYS, FACTS):
        with (stage / name).open("rb") as file:
            os.fsync(file.fileno())
    os.rename(stage, there)
    for old in _all(directory)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    for left in directory.glob(".step-*"):
        shutil.rmtree(left, ignore_errors=True)


def newest(directory: Path) -> Path | None:
    """The last complete checkpoint."""
    found = _all(directory)
    return found[-1] if found else None


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path / ARRAYS)
        facts = json.loads((path / FACTS).read_text(encoding="utf-8"))
    except (SafetensorError, ValueError, OSError) as error:
        raise FormatError(
            f"the checkpoint {path} is damaged: {error}. Delete it to go on from the one before"
        ) from None
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, facts


def _all(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if re.fullmatch(r"step-\d{8,}", path.name))
