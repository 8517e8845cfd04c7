"""Downloading one file: resumed where it was interrupted, verified, and then renamed.

Bytes go to `NAME.part`; `NAME.part.json` beside it identifies the version of the file by its ETag
or date, so that parts of two versions are never joined. The file gets its name when its size and
checksum are right. Uses the standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from elmokit.errors import ElmoError, FormatError, ModelNotFound
from elmokit.fetch.cache import CachedFile
from elmokit.fetch.http import Unavailable, connection_failure, open_address, public_address
from elmokit.fetch.published import RemoteFile
from elmokit.json_text import parse_json
from elmokit.storage import checksum, write_json

DownloadCallback = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes downloaded so far, and its size if known."""

BLOCK_BYTES = 1 << 18
"""Number of bytes that are read at once."""
TRIES = 3
"""Number of connections in a row that may bring nothing new."""
MOST_CONNECTIONS = 100
"""Number of connections for one file in all."""
BACKOFF_SECONDS = 0.5
"""Pause before the second try; doubled before each further one."""
SPARE_BYTES = 16 << 20
"""Free space that must remain on the disk."""

_WEB_PAGES = (b"<!doctype html", b"<html", b"<head", b"<body", b"<?xml", b"<error>")
_LFS = b"version https://git-lfs.github.com"


class UnexpectedContent(FormatError):
    """The server sent something else: another size, another checksum, a web page."""


@dataclass(frozen=True)
class _Version:
    """The version of the remote file that a part belongs to."""

    address: str
    etag: str | None
    modified: str | None
    total: int | None

    @property
    def validator(self) -> str | None:
        """The value for an If-Range header: a strong ETag, or the date."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.modified

    def continued_by(self, rest: _Version) -> bool:
        """Return whether the rest of a file has this version, as far as its headers tell."""
        pairs = (
            (self.etag, rest.etag),
            (self.modified, rest.modified),
            (self.total, rest.total),
        )
        return all(here == there or there is None for here, there in pairs)


def download(
    file: RemoteFile, folder: Path, progress: DownloadCallback, sha256: str | None = None
) -> CachedFile:
    """Download a file into a folder, from the first of its addresses that has it.

    Args:
        file: The file and its addresses.
        folder: The folder to put it in.
        progress: Called after every block.
        sha256: The checksum that the file must have, if one is known.

    Raises:
        FileNotAvailable: No address gives the file; the message says what was tried.
        FormatError: An address gave something else than the file.
    """
    tried: list[tuple[str, Unavailable | UnexpectedContent]] = []
    for address in file.addresses:
        try:
            return _from_address(file, address, folder, progress, sha256)
        except (Unavailable, UnexpectedContent) as error:
            tried.append((address, error))
    reasons = "; ".join(f"{public_address(address)}: {_reason(error)}" for address, error in tried)
    refused = [error for _, error in tried if isinstance(error, UnexpectedContent)]
    advice = "Or download the files yourself, put them in a folder and give its path as the model"
    if refused:
        raise FormatError(f"could not download {file.name}: {reasons}. {advice}") from None
    absent = all(isinstance(error, Unavailable) and error.absent for _, error in tried)
    raise FileNotAvailable(
        f"could not download {file.name}: {reasons}. "
        + ("" if absent else "Try again when the network is available; the download will resume. ")
        + advice,
        absent=absent,
    )


class FileNotAvailable(ModelNotFound):
    """No address gives a file; `absent` is true if every server says that it has no such file."""

    def __init__(self, message: str, *, absent: bool) -> None:
        """Store the message and whether the file does not exist anywhere."""
        super().__init__(message)
        self.absent = absent


def _reason(error: Unavailable | UnexpectedContent) -> str:
    return error.reason if isinstance(error, Unavailable) else str(error)


def remove_parts(file: RemoteFile, folder: Path) -> None:
    """Remove what an unfinished download of a file has left in a folder."""
    for path in _part_paths(file, folder):
        path.unlink(missing_ok=True)


def _part_paths(file: RemoteFile, folder: Path) -> tuple[Path, Path]:
    """Return the path of the part of a file, and of the note about it."""
    return folder / f"{file.name}.part", folder / f"{file.name}.part.json"


def _from_address(
    file: RemoteFile, address: str, folder: Path, progress: DownloadCallback, sha256: str | None
) -> CachedFile:
    part, note = _part_paths(file, folder)
    try:
        _fill(file, address, part, note, progress)
        cached = CachedFile(part.stat().st_size, checksum(part), public_address(address))
        if sha256 is not None and cached.sha256 != sha256:
            raise UnexpectedContent(
                f"the checksum (SHA-256) is {cached.sha256}, expected {sha256}: the file was "
                "damaged on the way, or was replaced on the server; it was deleted again"
            )
        if file.md5 is not None and (found := _md5(part)) != file.md5:
            raise UnexpectedContent(
                f"the checksum (MD5) is {found}, expected {file.md5}: the file was damaged on the "
                "way, or was replaced on the server; it was deleted again"
            )
    except UnexpectedContent:
        remove_parts(file, folder)
        raise
    with part.open("rb+") as written:
        os.fsync(written.fileno())
    os.replace(part, folder / file.name)
    note.unlink(missing_ok=True)
    return cached


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _fill(
    file: RemoteFile, address: str, part: Path, note: Path, progress: DownloadCallback
) -> None:
    """Connect as often as needed until the part is the whole file."""
    failures, furthest = 0, 0
    for _ in range(MOST_CONNECTIONS):
        try:
            if _connect(file, address, part, note, progress):
                return
            problem = Unavailable(
                "the connection was closed before the end of the file", temporary=True
            )
        except Unavailable as error:
            problem = error
            if error.status == 416:  # the part is longer than the file, so it is another version
                part.unlink(missing_ok=True)
        size = part.stat().st_size if part.exists() else 0
        failures = 0 if size > furthest else failures + 1
        furthest = max(size, furthest)
        if not problem.temporary or failures >= TRIES:
            raise problem
        if failures:
            time.sleep(BACKOFF_SECONDS * 2 ** (failures - 1))
    raise problem


def _connect(
    file: RemoteFile, address: str, part: Path, note: Path, progress: DownloadCallback
) -> bool:
    """Request what is missing, and return whether the file is complete afterwards."""
    before = _read_note(note, address)
    start = part.stat().st_size if before and part.exists() else 0
    if before and start and start == before.total:
        return True  # all bytes are here, but the last steps were interrupted
    headers = {}
    if before and before.validator and start:
        headers = {"Range": f"bytes={start}-", "If-Range": before.validator}
    with open_address(address, headers) as response:
        version = _version(response, address)
        if response.status == 206:
            continues = _first_byte(response) == start and before and before.continued_by(version)
            if not before or not continues:
                part.unlink(missing_ok=True)  # not the rest of this part: start over
                return False
            version = before
        else:
            start = 0
            _check_answer(file, version, response)
            write_json(note, asdict(version))
        _check_room(part, version, start)
        return _copy(file, response, part, start, version.total, progress)


def _version(response: http.client.HTTPResponse, address: str) -> _Version:
    headers = response.headers
    total: int | None = None
    if response.status == 206:
        span = re.fullmatch(r"bytes \d+-\d+/(\d{1,18})", headers.get("Content-Range", ""))
        total = int(span[1]) if span else None
    elif re.fullmatch(r"\d{1,15}", headers.get("Content-Length", "")):
        total = int(headers["Content-Length"])
    return _Version(
        public_address(address), headers.get("ETag"), headers.get("Last-Modified"), total
    )


def _first_byte(response: http.client.HTTPResponse) -> int | None:
    span = re.match(r"bytes (\d{1,18})-", response.headers.get("Content-Range", ""))
    return int(span[1]) if span else None


def _check_answer(file: RemoteFile, version: _Version, response: http.client.HTTPResponse) -> None:
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise UnexpectedContent(_web_page(file))
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise UnexpectedContent(
            f"the server sent it compressed ({encoding}), which was not requested"
        )
    if file.bytes is not None and version.total not in (None, file.bytes):
        raise UnexpectedContent(
            f"the file on the server has {version.total:,} bytes, expected {file.bytes:,}"
        )


def _web_page(file: RemoteFile) -> str:
    return (
        f"the server sent a web page instead of {file.name}, perhaps a login or error page of the "
        "server or of your network. Open the address in a browser to see it"
    )


def _check_room(part: Path, version: _Version, start: int) -> None:
    needed = (version.total or 0) - start
    free = shutil.disk_usage(part.parent).free
    if free < needed + SPARE_BYTES:
        raise ElmoError(
            f"{part.parent} has {free / 1e6:,.0f} MB of free space, {needed / 1e6:,.0f} MB are "
            "needed; delete something, or set ELMOKIT_CACHE to a directory on another disk"
        )


def _copy(
    file: RemoteFile,
    response: http.client.HTTPResponse,
    part: Path,
    start: int,
    total: int | None,
    progress: DownloadCallback,
) -> bool:
    """Append the response to the part, and return whether the file is complete."""
    limit = total if total is not None else file.bytes
    with part.open("rb+" if start else "wb", buffering=0) as out:
        out.seek(start)
        done = start
        progress(file.name, done, limit)
        while True:
            try:
                block = response.read(BLOCK_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise connection_failure(error) from None
            if not block:
                break
            if not done:
                _check_start(file, block)
            done += len(block)
            if limit is not None and done > limit:
                raise UnexpectedContent(f"the server sent more than {limit:,} bytes")
            _write(out, block, part)
            progress(file.name, done, limit)
    if total is not None:
        return done == total
    if file.bytes is not None and done != file.bytes:
        raise UnexpectedContent(f"the server sent {done:,} bytes, expected {file.bytes:,}")
    return True


def _check_start(file: RemoteFile, block: bytes) -> None:
    start = block[:256].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.lower().startswith(_WEB_PAGES):
        raise UnexpectedContent(_web_page(file))
    if start.startswith(_LFS):
        raise UnexpectedContent(
            f"the server sent a Git LFS pointer instead of {file.name}; the file itself has "
            "another address (on GitHub: https://media.githubusercontent.com/media/OWNER/NAME/...)"
        )


def _write(out: BinaryIO, block: bytes, part: Path) -> None:
    try:
        out.write(block)
    except OSError as error:
        raise ElmoError(
            f"cannot write to {part.parent}: {error.strerror}. Delete something and try again (the "
            "download will resume), or set ELMOKIT_CACHE to a directory on another disk"
        ) from None


def _read_note(note: Path, address: str) -> _Version | None:
    """Return the version of the part, if it came from this address."""
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        version = _Version(**parse_json(note.read_bytes()))
        if version.address == public_address(address):
            return version
    return None
