"""Which files a model of our own format has, as its manifest lists them.

Asked of the manifest and not of a list of names here, since the format may grow. Whether the files
are a model is the reader's business (`formats/native.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.fetch.cache import RECORD

MANIFEST = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.(?:json|safetensors|txt)")
"""A plain name that is no pattern and no path."""


def listed(manifest: Path, where: str) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of each file; `where` names the manifest in messages."""
    try:
        files = json.loads(manifest.read_bytes())["files"]
        entries = {name: (entry["bytes"], entry["sha256"]) for name, entry in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError(f"{where} is no manifest of a model") from None
    for name, (size, sha256) in entries.items():
        plain = _NAME.fullmatch(name) and name not in (MANIFEST, RECORD)
        if not plain or not isinstance(size, int) or not isinstance(sha256, str):
            raise FormatError(f"the manifest {where} lists {name!r}, which no model has")
    return entries
