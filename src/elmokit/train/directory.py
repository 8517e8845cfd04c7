"""A corpus's directory that is there as a whole or not at all.

It is filled under another name beside its place; the manifest is written last, when all other files
have reached the disk, and then the directory is renamed.
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
from elmokit.text.files import checksum
from elmokit.train.corpus import MANIFEST, VERSION, fingerprint_of


def check_target(target: Path, force: bool) -> None:
    """Refuse a place where something is; with `force` only if that is no corpus."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not force:
        raise InputError(f"{target} exists; nothing was done. Give another name, or --force")
    if not (target / MANIFEST).is_file():
        raise InputError(f"{target} exists and is no corpus: it is not replaced, even by force")


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A directory to work in, on the target's disk; gone afterwards unless it was moved."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = _hidden(target, "partial")
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write_manifest(place: Path, about: Mapping[str, Any]) -> None:
    """Write what there is, with the checksums of all files and one for the whole."""
    files = {}
    for path in sorted(place.iterdir()):
        _sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    whole = {
        "format": "elmokit corpus",
        "version": VERSION,
        "elmokit": elmokit.__version__,
        "fingerprint": fingerprint_of(files),
        **about,
        "files": files,
    }
    text = json.dumps(whole, ensure_ascii=False, indent=1)
    (place / MANIFEST).write_text(text + "\n", encoding="utf-8")
    _sync(place / MANIFEST)


def move(place: Path, target: Path, force: bool) -> None:
    """Give the directory its name, in the place of what is there."""
    check_target(target, force)  # it may have come into being meanwhile
    if not target.exists():
        place.rename(target)
        return
    old = _hidden(target, "old")
    target.rename(old)
    try:
        place.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _hidden(target: Path, kind: str) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(4)}.{kind}"


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
