"""The files of a model in elmokit's own format, as its manifest lists them.

The manifest is asked rather than a list of names here, since the format may grow. Whether the files
make a model is up to the reader (`formats/native.py`).
"""

from __future__ import annotations

import re
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.fetch.cache import RECORD_FILE
from elmokit.json_text import parse_json

MANIFEST = "manifest.json"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.(?:json|safetensors|txt)")
"""A plain file name: neither a pattern nor a path."""


def read_manifest(manifest: Path, where: str) -> dict[str, tuple[int, str]]:
    """Return the size and SHA-256 of each file that a manifest lists.

    Args:
        manifest: The manifest on disk.
        where: Name of the manifest for error messages.
    """
    try:
        files = parse_json(manifest.read_bytes())["files"]
        entries = {name: (entry["bytes"], entry["sha256"]) for name, entry in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError(
            f"{where} is not the manifest of a model; expected a JSON object that lists files"
        ) from None
    for name, (size, sha256) in entries.items():
        plain = _FILE_NAME.fullmatch(name) and name not in (MANIFEST, RECORD_FILE)
        if not plain or not isinstance(size, int) or not isinstance(sha256, str):
            raise FormatError(
                f"the manifest {where} lists {name!r}, which is not a valid entry; expected plain "
                "file names with a size and a checksum"
            )
    return entries
