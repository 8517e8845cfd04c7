"""Where the files of a model are: a directory, or a zip or tar archive that is used like one.

Only files directly inside it can be read. Knows nothing about what the files mean.
"""

from __future__ import annotations

import io
import zipfile
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats.tar_archive import FREE_BYTES, LARGEST_RATIO, TarArchive
from elmokit.json_text import parse_json
from elmokit.staging import finish_replacements, pending_files

LARGEST_TEXT = 1 << 30
"""Size in bytes at most of a file that is read whole; weights are read in parts instead."""


class ModelSource:
    """The files of a model by name, in a directory or an archive."""

    def __init__(self, path: Path) -> None:
        """List the files of a directory, a zip archive or a tar archive."""
        self.path = path
        self._archive: zipfile.ZipFile | TarArchive | None = None
        self._archive_bytes = 0
        self._prefix = ""
        self._moved: dict[str, Path | None] = {}
        if path.is_dir():
            self._list_directory()
        else:
            self._open_archive()

    def _list_directory(self) -> None:
        # A model that was being replaced when its process was killed is the new one.
        try:
            finish_replacements(self.path)
        except OSError:  # perhaps a read-only disk
            self._moved = pending_files(self.path)
        names = {entry.name for entry in self.path.iterdir() if entry.is_file()}
        removed = {name for name, place in self._moved.items() if place is None}
        self.names = sorted((names | set(self._moved)) - removed)

    def _open_archive(self) -> None:
        self._archive_bytes = self.path.stat().st_size
        try:
            if zipfile.is_zipfile(self.path):
                self._archive = zipfile.ZipFile(self.path)
            else:
                self._archive = TarArchive(self.path)
        except FormatError:
            raise
        except Exception as error:  # a damaged archive can raise nearly anything inside zipfile
            raise FormatError(f"{self.path} is not a readable archive: {error}") from None
        members = [name for name in self._archive.namelist() if not name.endswith("/")]
        # Archives often hold one folder with the files: the topmost level with files is the model.
        depth = min((name.count("/") for name in members), default=0)
        level = [name for name in members if name.count("/") == depth]
        folders = sorted({name.rpartition("/")[0] for name in level})
        if len(folders) > 1:
            raise FormatError(
                f"{self.path} holds several folders ({', '.join(folders[:4])}); expected one "
                "model. Unpack it and give the path of one folder"
            )
        self._prefix = folders[0] + "/" if folders and folders[0] else ""
        self.names = sorted(name.rpartition("/")[2] for name in level)

    def folder(self, name: str) -> ModelSource:
        """Return the files of a folder beside these files."""
        if self._archive is None:
            return ModelSource(self.path / name)
        inner = copy(self)
        inner.path, inner._prefix = self.path / name, f"{self._prefix}{name}/"
        members = (m for m in self._archive.namelist() if m.startswith(inner._prefix))
        files = (member.removeprefix(inner._prefix) for member in members)
        inner.names = sorted(file for file in files if file and "/" not in file)
        return inner

    @property
    def is_archive(self) -> bool:
        """Whether the files are in a zip archive."""
        return self._archive is not None

    def locate(self, name: str) -> Path | None:
        """Return the path of a file; None if it is in an archive."""
        if self._archive is not None:
            return None
        return self._path(name)

    def describe(self, name: str) -> str:
        """Return the path of a file for messages."""
        return str(self.path / name)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        if self._archive is not None:
            return self._archive.getinfo(self._prefix + name).file_size
        return self._path(name).stat().st_size

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        if name not in self.names:
            raise ModelNotFound(f"{self.path} has no {name}; found {list_names(self.names)}")
        self._check_size(name)
        try:
            if self._archive is not None:
                return self._archive.read(self._prefix + name)
            return self._path(name).read_bytes()
        except Exception as error:  # a damaged archive can raise nearly anything inside zipfile
            raise FormatError(f"{self.describe(name)} cannot be read: {error}") from None

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a file that holds one JSON object."""
        try:
            data = parse_json(self.read(name), unique=True)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{self.describe(name)} is not valid JSON: {error}") from None
        if not isinstance(data, dict):
            raise FormatError(
                f"{self.describe(name)} holds a {type(data).__name__}; expected a JSON object"
            )
        return data

    def _check_size(self, name: str) -> None:
        """Raise `FormatError` for a file that would fill the memory, such as a zip bomb."""
        size = self.size(name)
        if self._archive is None:
            if size > LARGEST_TEXT:
                raise FormatError(
                    f"{self.describe(name)} has {size:,} bytes, which is too large for this file; "
                    "is it something else?"
                )
            return
        if isinstance(self._archive, TarArchive):  # it was compared when it was unpacked
            return
        stated = self._archive.getinfo(self._prefix + name).compress_size
        compressed = min(stated, self._archive_bytes)
        if size > FREE_BYTES + LARGEST_RATIO * compressed:
            raise FormatError(
                f"{self.describe(name)} would unpack from {compressed:,} to {size:,} bytes and was "
                "not read: weights never compress that well"
            )

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading and seeking; a file in an archive is held in memory."""
        if self._archive is not None:
            return io.BytesIO(self.read(name))
        return self._path(name).open("rb")

    def _path(self, name: str) -> Path:
        return self._moved.get(name) or self.path / name


def list_names(names: list[str]) -> str:
    """Return the first names of a list for a message."""
    if not names:
        return "no files"
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
