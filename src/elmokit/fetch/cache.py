"""The directory of downloaded models: one folder per model, with a record that is written last.

The record `downloaded.json` holds the size and SHA-256 of every file. A folder with a record is
complete; its files are compared with the record at every use, since a flipped bit in a weight would
otherwise go unnoticed. Where no checksum was published, that of the first download is kept.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import ElmoError
from elmokit.json_text import parse_json
from elmokit.storage import checksum, write_json

RECORD_FILE = "downloaded.json"
LOCK_FILE = ".lock"
FORMAT, VERSION = "elmokit-download", 1


@dataclass(frozen=True)
class CachedFile:
    """Size, checksum and origin of a downloaded file."""

    bytes: int
    """Size in bytes."""
    sha256: str
    """Checksum as 64 hexadecimal digits."""
    address: str
    """Where it was downloaded from, without the query, which may contain a secret."""


def models_root() -> Path:
    """Return `$ELMOKIT_CACHE/models`, or `elmokit/models` in the user's cache directory."""
    if own := os.environ.get("ELMOKIT_CACHE"):
        return Path(own).expanduser() / "models"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(shared) if os.path.isabs(shared) else Path.home() / ".cache"
    return base / "elmokit" / "models"


def is_offline() -> bool:
    """Return whether the environment forbids the network (`ELMOKIT_OFFLINE=1`)."""
    return is_enabled("ELMOKIT_OFFLINE")


def is_enabled(variable: str) -> bool:
    """Return whether an environment variable is set to 1, true, yes or on."""
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")


def make_model_directory(folder: Path) -> None:
    """Create the folder of a model; raise `ElmoError` with advice if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ElmoError(
            f"cannot create the cache directory {folder}: {error.strerror}; set ELMOKIT_CACHE to a "
            "directory that you can write to"
        ) from None


def read_record(folder: Path) -> dict[str, CachedFile] | None:
    """Return the files of a complete folder by name; None without a valid record."""
    try:
        data = parse_json((folder / RECORD_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        return None
    files = data.get("files")
    if not isinstance(files, dict) or not files:
        return None
    record = {}
    for name, entry in files.items():
        file = _parse_entry(entry)
        if Path(name).name != name or file is None:
            return None
        record[name] = file
    return record


def _parse_entry(data: Any) -> CachedFile | None:
    if not isinstance(data, dict) or set(data) != {"bytes", "sha256", "address"}:
        return None
    size, digest, address = data["bytes"], data["sha256"], data["address"]
    valid = isinstance(size, int) and isinstance(digest, str) and isinstance(address, str)
    return CachedFile(size, digest, address) if valid else None


def write_record(folder: Path, files: dict[str, CachedFile]) -> None:
    """Record the files of a folder, which declares it complete."""
    entries = {name: asdict(file) for name, file in files.items()}
    write_json(folder / RECORD_FILE, {"format": FORMAT, "version": VERSION, "files": entries})


def is_intact(path: Path, file: CachedFile) -> bool:
    """Return whether a file exists with the recorded size and checksum."""
    try:
        return path.stat().st_size == file.bytes and checksum(path) == file.sha256
    except (OSError, ElmoError):
        return False
