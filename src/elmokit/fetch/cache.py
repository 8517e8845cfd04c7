"""The directory of downloaded models: one folder a model, with a record that is written last.

The record `downloaded.json` holds size and SHA-256 of every file. A folder with a record is
complete; its files are compared with it every time, since a flipped bit in a weight would never
show. A checksum that nobody published is the one of the first download, and stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import ElmoError

RECORD = "downloaded.json"
LOCK = ".lock"
FORMAT, VERSION = "elmokit-download", 1


@dataclass(frozen=True)
class Entry:
    """What is known about a file that was downloaded."""

    bytes: int
    sha256: str
    address: str
    """Without its query, which may hold a secret."""


def models_root() -> Path:
    """`$ELMOKIT_CACHE/models`, or `elmokit/models` in the user's cache directory."""
    if own := os.environ.get("ELMOKIT_CACHE"):
        return Path(own).expanduser() / "models"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(shared) if os.path.isabs(shared) else Path.home() / ".cache"
    return base / "elmokit" / "models"


def offline() -> bool:
    """Whether the environment forbids to use the network (ELMOKIT_OFFLINE=1)."""
    return is_set("ELMOKIT_OFFLINE")


def is_set(variable: str) -> bool:
    """Whether an environment variable says yes."""
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")


def make(folder: Path) -> None:
    """Make a model's folder, or say why that cannot be done and what to do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ElmoError(
            f"cannot make the cache directory {folder}: {error.strerror}; set ELMOKIT_CACHE to a "
            "directory that can be written"
        ) from None


def read_record(folder: Path) -> dict[str, Entry] | None:
    """The files that a complete folder has; None where there is no record that can be read."""
    try:
        data = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        return None
    files = data.get("files")
    if not isinstance(files, dict) or not files:
        return None
    entries = {name: _entry(entry) for name, entry in files.items() if Path(name).name == name}
    if len(entries) != len(files):
        return None
    known = {name: entry for name, entry in entries.items() if entry is not None}
    return known if len(known) == len(entries) else None


def _entry(data: Any) -> Entry | None:
    if not isinstance(data, dict) or set(data) != {"bytes", "sha256", "address"}:
        return None
    size, digest, address = data["bytes"], data["sha256"], data["address"]
    right = isinstance(size, int) and isinstance(digest, str) and isinstance(address, str)
    return Entry(size, digest, address) if right else None


def write_record(folder: Path, entries: dict[str, Entry]) -> None:
    """Say that a folder is complete."""
    files = {name: asdict(entry) for name, entry in entries.items()}
    write_json(folder / RECORD, {"format": FORMAT, "version": VERSION, "files": files})


def write_json(path: Path, data: Any) -> None:
    """Write a small file whole or not at all."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=2)
            file.write("\n")
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def intact(path: Path, entry: Entry) -> bool:
    """Whether a file is there and still what it was."""
    try:
        return path.stat().st_size == entry.bytes and sha256(path) == entry.sha256
    except OSError:
        return False


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
