"""Checkpoints: everything a run needs to go on as if it had never stopped.

A checkpoint is a directory `step-00001234` with state.safetensors (arrays) and state.json (other
values, the checksum of the arrays, and its own). It is written under a hidden name and renamed when
it is complete, so that the newest checkpoint is intact whenever the process dies; the checksums are
compared when it is loaded. Knows nothing about networks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import ElmoError, FormatError
from elmokit.json_text import SEAL, check_seal, parse_json, seal
from elmokit.storage import check_regular, checksum, explain_write_errors, sync_file

ARRAYS, VALUES = "state.safetensors", "state.json"
_SEALED = {"arrays", "values", SEAL}
KEEP = 2
"""Number of checkpoints to keep; older ones are deleted."""


def save(directory: Path, step: int, arrays: Mapping[str, Tensor], values: dict[str, Any]) -> None:
    """Write a checkpoint and delete old ones; a step that has a checkpoint keeps it."""
    from safetensors.numpy import save_file

    target, stage = directory / f"step-{step:08d}", directory / f".step-{step:08d}"
    if target.exists():
        _delete_old(directory)  # a run may have been killed before it came to this
        return
    shutil.rmtree(stage, ignore_errors=True)
    plain = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in arrays.items()}
    with explain_write_errors(target, kept=lambda: describe_kept(directory)):
        try:
            stage.mkdir(parents=True)
            save_file(plain, stage / ARRAYS)
            content = seal({"arrays": checksum(stage / ARRAYS), "values": values})
            (stage / VALUES).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            for name in (ARRAYS, VALUES):
                sync_file(stage / name)
            os.rename(stage, target)
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise
    _delete_old(directory)


def _delete_old(directory: Path) -> None:
    """Delete all but the newest checkpoints, and what killed runs have left."""
    for incomplete in directory.glob(".step-*"):
        shutil.rmtree(incomplete, ignore_errors=True)
    for old in _list_checkpoints(directory)[:-KEEP]:
        hidden = old.with_name(f".{old.name}")
        with contextlib.suppress(OSError):
            os.rename(old, hidden)  # so that half of a checkpoint never has its name
        shutil.rmtree(hidden, ignore_errors=True)


def describe_kept(directory: Path) -> str:
    """Return what an unfinished run can continue from, for an error message."""
    newest = find_newest(directory)
    kept = "no checkpoint was written yet" if newest is None else f"{newest.name} is kept"
    return f"{kept}. Make room, then give the same command with --resume"


def find_newest(directory: Path) -> Path | None:
    """Return the newest complete checkpoint in a directory, or None if there is none."""
    checkpoints = _list_checkpoints(directory)
    return checkpoints[-1] if checkpoints else None


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the arrays and the values of a checkpoint, also of an earlier version."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        for name in (VALUES, ARRAYS):
            check_regular(path / name)
        values = parse_json((path / VALUES).read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError(f"{VALUES} holds no object")
        if set(values) == _SEALED:  # since version 0.2
            check_seal(values)
            if checksum(path / ARRAYS) != values["arrays"]:
                raise ValueError(f"the checksum of {ARRAYS} differs")
            values = values["values"]
        elif _SEALED & set(values):
            raise ValueError(f"{VALUES} has the keys {', '.join(map(repr, values))}")
        arrays = load_file(path / ARRAYS)
    except (
        *(SafetensorError, ValueError, OSError, ElmoError),
        *(AttributeError, KeyError, TypeError),  # of numbers that NumPy does not have
    ) as error:
        raise FormatError(
            f"the checkpoint {path} is damaged: {error}. Delete it to go on from the one before"
        ) from None
    return {_current_name(name): torch.from_numpy(array) for name, array in arrays.items()}, values


def _current_name(name: str) -> str:
    """Return the name of an array that had a British spelling in earlier versions."""
    return re.sub(r"^optimiser(?=[./])", "optimizer", name)


def _list_checkpoints(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if re.fullmatch(r"step-\d{8,}", path.name))
