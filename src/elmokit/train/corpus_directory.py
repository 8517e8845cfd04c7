"""Writing the directory of a corpus so that it is either complete or absent.

The files are written to a hidden directory beside the target; the manifest comes last, when all
other files have reached the disk, and then the directory is renamed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import elmokit
from elmokit.errors import InputError
from elmokit.storage import checksum, explain_write_errors
from elmokit.train.corpus import MANIFEST, VERSION, combine_checksums


def check_target(target: Path, force: bool) -> None:
    """Raise if something exists at the target; with `force`, only if it is not a corpus."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not force:
        raise InputError(
            f"{target} exists, so nothing was done; give another directory, or replace it: --force"
        )
    if not (target / MANIFEST).is_file():
        raise InputError(
            f"{target} exists and is not a corpus, so --force does not replace it; "
            "give another directory"
        )


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """Make a directory on the target's disk; delete it at the end unless it was moved."""
    directory = _hidden(target, "partial")
    with explain_write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir()
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def write_manifest(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Write corpus.json: the metadata, the checksums of all files, and the corpus's fingerprint."""
    files = {}
    for path in sorted(directory.iterdir()):
        _sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    manifest = {
        "format": "elmokit corpus",
        "version": VERSION,
        "elmokit": elmokit.__version__,
        "fingerprint": combine_checksums(files),
        **metadata,
        "files": files,
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")
    _sync(directory / MANIFEST)


def replace_directory(directory: Path, target: Path, force: bool) -> None:
    """Move a directory to the target, replacing the corpus there if `force` is set."""
    check_target(target, force)  # again, since time has passed
    if not target.exists():
        directory.rename(target)
        return
    old = _hidden(target, "old")
    target.rename(old)
    try:
        directory.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _hidden(target: Path, suffix: str) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(4)}.{suffix}"


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
