"""The files of a tar archive, compressed or not, held in memory and never written to a disk.

A tar archive has no table of contents, so it is read once from its beginning to its end. Links,
devices and names that lead out of the archive are refused, and so is one that unpacks to far more
than it is: weights do not compress well. Knows nothing about what the files mean.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from elmokit.errors import FormatError
from elmokit.text.compressed import HEAD_BYTES, ByteStream, decompress, explain_damage

LARGEST_ARCHIVE = 8 << 30
"""Size in bytes of all files at most."""
LARGEST_RATIO = 20
"""Compression ratio at most, beyond `FREE_BYTES`."""
FREE_BYTES = 64 << 20
MOST_FILES = 10_000
"""Number of entries at most."""


class TarEntry(NamedTuple):
    """The sizes of a file, under the names that zip archives use."""

    file_size: int
    compress_size: int


class TarArchive:
    """A tar archive that was read, with the methods of `zipfile.ZipFile` that are used here."""

    def __init__(self, path: Path) -> None:
        """Read all files of an archive."""
        self._files: dict[str, bytes] = {}
        limit = min(LARGEST_ARCHIVE, FREE_BYTES + LARGEST_RATIO * path.stat().st_size)
        with path.open("rb") as raw, explain_damage(str(path)):
            head = raw.read(HEAD_BYTES)
            raw.seek(0)
            plain = decompress(raw, head, str(path))
            stream: Any = io.BufferedReader(_LimitedReader(plain, limit, str(path)), 1 << 18)
            try:
                with tarfile.open(fileobj=stream, mode="r|") as archive:
                    for count, member in enumerate(archive):
                        if count == MOST_FILES:
                            raise FormatError(f"{path} has more than {MOST_FILES:,} entries")
                        self._add(archive, member, path)
            except (tarfile.TarError, ValueError, OverflowError) as error:
                raise FormatError(f"{path} is not a readable tar archive: {error}") from None

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        if member.isdir():
            return
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if not member.isreg() or member.name.startswith("/") or ".." in parts or not parts:
            raise FormatError(
                f"{path} holds {member.name[:100]!r}, which is a link, a device or a path that "
                "leads out of the archive; nothing was read"
            )
        if member.issparse():  # it unpacks to as many zeros as it says
            raise FormatError(
                f"{path} holds {member.name[:100]!r} with holes in it; nothing was read. Pack it "
                "again without --sparse"
            )
        name = str(PurePosixPath(*parts))
        if name in self._files:
            raise FormatError(f"{path} holds {name[:100]!r} twice; nothing was read")
        file = archive.extractfile(member)
        self._files[name] = file.read() if file is not None else b""

    def namelist(self) -> list[str]:
        """Return the names of all files."""
        return list(self._files)

    def getinfo(self, name: str) -> TarEntry:
        """Return the sizes of a file."""
        size = len(self._files[name])
        return TarEntry(size, size)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return self._files[name]


def is_tar(path: Path) -> bool:
    """Return whether a file is a tar archive, by its name or by its first bytes."""
    if path.name.lower().endswith((".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")):
        return True
    try:
        with path.open("rb") as raw:
            head = raw.read(HEAD_BYTES)
            raw.seek(0)
            with explain_damage(str(path)):
                start = decompress(raw, head, str(path)).read(512) or b""
    except (OSError, FormatError):
        return False
    return start[257:262] == b"ustar"


class _LimitedReader(io.RawIOBase):
    """A stream that refuses to go on after too many bytes."""

    def __init__(self, stream: ByteStream | BinaryIO, limit: int, name: str) -> None:
        self._stream, self._left, self._name = stream, limit, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer)) or b""
        self._left -= len(data)
        if self._left < 0:
            raise FormatError(
                f"{self._name} unpacks to far more than a model and was not read: weights never "
                "compress that well"
            )
        buffer[: len(data)] = data
        return len(data)
