"""Writing the directory of a corpus so that it is either complete or absent.

The files are written to a hidden directory beside the target, which is renamed when all of them
have reached the disk. The files of an existing corpus are replaced in one step (`staging.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import elmokit
from elmokit.errors import InputError
from elmokit.json_text import seal
from elmokit.staging import commit_directory, try_to_finish
from elmokit.storage import checksum
from elmokit.train.corpus import MANIFEST, VERSION, combine_checksums


def check_target(target: Path, force: bool) -> None:
    """Raise if something exists at the target; with `force`, only if it is not a corpus."""
    try_to_finish(target)
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


def write_manifest(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Write corpus.json: the metadata, the checksums of all files, and the corpus's fingerprint."""
    files = {}
    for path in sorted(directory.iterdir()):
        files[path.name] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    manifest = {
        "format": "elmokit corpus",
        "version": VERSION,
        "elmokit": elmokit.__version__,
        "fingerprint": combine_checksums(files),
        **metadata,
        "files": files,
    }
    text = json.dumps(seal(manifest), ensure_ascii=False, indent=1)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def replace_corpus(directory: Path, target: Path, force: bool) -> None:
    """Move a directory to the target, replacing the corpus there if `force` is set."""
    check_target(target, force)  # again, since time has passed
    old = [path.name for path in target.iterdir() if path.is_file()] if target.exists() else []
    commit_directory(directory, target, MANIFEST, old)
