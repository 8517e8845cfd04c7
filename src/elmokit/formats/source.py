"""A place that holds the files of a model: a directory, or a zip archive used as one.

Only plain names inside the place can be read. Knows nothing about what the files mean.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from elmokit.errors import FormatError, ModelNotFound

LARGEST_TEXT = 1 << 30
"""Bytes of a file that is read whole; weights in a directory are mapped instead."""
LARGEST_RATIO = 20
"""How far a large member of an archive may be packed."""


class Source:
    """Files by name."""

    def __init__(self, path: Path) -> None:
        """Look at a directory or a zip archive."""
        self.path = path
        self._archive: zipfile.ZipFile | None = None
        self._prefix = ""
        if path.is_dir():
            self.names = sorted(entry.name for entry in path.iterdir() if entry.is_file())
        else:
            self._open_archive()

    def _open_archive(self) -> None:
        try:
            self._archive = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError) as error:
            raise FormatError(f"{self.path} is not a readable zip archive: {error}") from None
        members = [name for name in self._archive.namelist() if not name.endswith("/")]
        # Archives often hold one folder that holds the files: the shallowest level is the model.
        depth = min((name.count("/") for name in members), default=0)
        level = [name for name in members if name.count("/") == depth]
        folders = sorted({name.rpartition("/")[0] for name in level})
        if len(folders) > 1:
            raise FormatError(
                f"{self.path} holds several folders ({', '.join(folders[:4])}); "
                "expected one model. Unpack it and give the path of one folder"
            )
        self._prefix = folders[0] + "/" if folders and folders[0] else ""
        self.names = sorted(name.rpartition("/")[2] for name in level)

    @property
    def file_path(self) -> Path | None:
        """The directory, or None where the files lie in an archive."""
        return self.path if self._archive is None else None

    def describe(self, name: str) -> str:
        """A file's name for messages."""
        return str(self.path / name)

    def size(self, name: str) -> int:
        """The bytes of a file."""
        if self._archive is not None:
            return self._archive.getinfo(self._prefix + name).file_size
        return (self.path / name).stat().st_size

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        if name not in self.names:
            raise ModelNotFound(f"{self.path} has no {name}; found {listing(self.names)}")
        self._check_size(name)
        try:
            if self._archive is not None:
                return self._archive.read(self._prefix + name)
            return (self.path / name).read_bytes()
        except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError) as error:
            raise FormatError(f"{self.describe(name)} cannot be read: {error}") from None

    def read_json(self, name: str) -> dict[str, Any]:
        """A file that holds one JSON object."""
        try:
            data = json.loads(self.read(name))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{self.describe(name)} is not JSON: {error}") from None
        if not isinstance(data, dict):
            found = type(data).__name__
            raise FormatError(f"{self.describe(name)} holds a {found}; expected a JSON object")
        return data

    def _check_size(self, name: str) -> None:
        """Refuse what would fill the memory: text that is no text, and archives that explode."""
        size = self.size(name)
        if self._archive is None:
            if size > LARGEST_TEXT:
                raise FormatError(f"{self.describe(name)} has {size:,} bytes; it cannot be text")
            return
        packed = self._archive.getinfo(self._prefix + name).compress_size
        if size > LARGEST_TEXT and size > LARGEST_RATIO * packed:
            raise FormatError(
                f"{self.describe(name)} would unpack from {packed:,} to {size:,} bytes; weights "
                "never shrink that much, so it was refused"
            )

    def open(self, name: str) -> BinaryIO:
        """A file that can be sought in; one of an archive is held in memory."""
        if self._archive is not None:
            return io.BytesIO(self.read(name))
        return (self.path / name).open("rb")


def listing(names: list[str]) -> str:
    """Some names for a message."""
    if not names:
        return "no files"
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
