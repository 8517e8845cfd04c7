"""One file from the network to the disk: resumed where it broke off, checked, and then renamed.

Bytes go to `NAME.part`, beside which `NAME.part.json` says which version of the file they are of
(its ETag or date), so that parts of two versions are never joined. The name itself appears when the
size and the checksum are right. Standard library only.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from elmokit.errors import ElmoError, FormatError, ModelNotFound
from elmokit.fetch.cache import Entry, sha256, write_json
from elmokit.fetch.http import Unavailable, broken, open_address, shown
from elmokit.fetch.progress import Report
from elmokit.fetch.published import RemoteFile

BLOCK = 1 << 18
TRIES = 3
"""How often in a row a connection may bring nothing new."""
MOST_CONNECTIONS = 100
BACKOFF_SECONDS = 0.5
"""The pause before the second try; doubled before each further one."""
SPARE_BYTES = 16 << 20
"""Room that stays free on the disk."""

_PAGES = (b"<!doctype html", b"<html", b"<head", b"<body", b"<?xml", b"<error>")
_LFS = b"version https://git-lfs.github.com"


class Refused(FormatError):
    """What came is not the file: another size, another checksum, a web page."""


@dataclass(frozen=True)
class _Version:
    """Which version of a file the bytes in a part belong to."""

    address: str
    etag: str | None
    modified: str | None
    total: int | None

    @property
    def validator(self) -> str | None:
        """What If-Range takes: a strong ETag, or the date."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.modified

    def continued_by(self, rest: _Version) -> bool:
        """Whether the rest of a file is of this version, as far as its headers say."""
        pairs = (
            (self.etag, rest.etag),
            (self.modified, rest.modified),
            (self.total, rest.total),
        )
        return all(here == there or there is None for here, there in pairs)


def download(file: RemoteFile, folder: Path, report: Report, sha: str | None = None) -> Entry:
    """Bring a file into a folder, from the first of its addresses that has it.

    `sha` is the checksum that it must have, if one is known. Raises `ModelNotFound` where no
    address gives the file, with what was tried and what to do.
    """
    tried: list[tuple[str, Unavailable | Refused]] = []
    for address in file.addresses:
        try:
            return _from_address(file, address, folder, report, sha)
        except (Unavailable, Refused) as error:
            tried.append((address, error))
    reasons = "; ".join(f"{shown(address)}: {_reason(error)}" for address, error in tried)
    refused = [error for _, error in tried if isinstance(error, Refused)]
    advice = "Or download the files by hand, put them in a folder and give its path as the model"
    if refused:
        raise FormatError(f"could not download {file.name}: {reasons}. {advice}") from None
    absent = all(isinstance(error, Unavailable) and error.absent for _, error in tried)
    raise Missing(
        f"could not download {file.name}: {reasons}. "
        + ("" if absent else "Try again when the network is there; what has come is kept. ")
        + advice,
        absent=absent,
    )


class Missing(ModelNotFound):
    """No address gives a file; `absent` if all of them said so themselves."""

    def __init__(self, message: str, *, absent: bool) -> None:
        """Remember why."""
        super().__init__(message)
        self.absent = absent


def _reason(error: Unavailable | Refused) -> str:
    return error.reason if isinstance(error, Unavailable) else str(error)


def _from_address(
    file: RemoteFile, address: str, folder: Path, report: Report, sha: str | None
) -> Entry:
    part = folder / f"{file.name}.part"
    note = folder / f"{file.name}.part.json"
    try:
        _fill(file, address, part, note, report)
        found = Entry(part.stat().st_size, sha256(part), shown(address))
        if sha is not None and found.sha256 != sha:
            raise Refused(
                f"the checksum (SHA-256) is {found.sha256}, expected {sha}: damaged on the way, "
                "or not the file that it was; nothing of it was kept"
            )
    except Refused:
        part.unlink(missing_ok=True)
        note.unlink(missing_ok=True)
        raise
    with part.open("rb+") as written:
        os.fsync(written.fileno())
    os.replace(part, folder / file.name)
    note.unlink(missing_ok=True)
    return found


def _fill(file: RemoteFile, address: str, part: Path, note: Path, report: Report) -> None:
    """Connect until the part is the whole file."""
    failures, furthest = 0, 0
    for _ in range(MOST_CONNECTIONS):
        try:
            if _connect(file, address, part, note, report):
                return
            problem = Unavailable("the connection broke off", passing=True)
        except Unavailable as error:
            problem = error
            if error.status == 416:  # the part is longer than the file: it is of another version
                part.unlink(missing_ok=True)
        here = part.stat().st_size if part.exists() else 0
        failures = 0 if here > furthest else failures + 1
        furthest = max(here, furthest)
        if not problem.passing or failures >= TRIES:
            raise problem
        if failures:
            time.sleep(BACKOFF_SECONDS * 2 ** (failures - 1))
    raise problem


def _connect(file: RemoteFile, address: str, part: Path, note: Path, report: Report) -> bool:
    """One request for what is missing; whether the file is whole then."""
    before = _read_note(note, address)
    start = part.stat().st_size if before and part.exists() else 0
    if before and start and start == before.total:
        return True  # all bytes came, but not the last steps
    headers = {}
    if before and before.validator and start:
        headers = {"Range": f"bytes={start}-", "If-Range": before.validator}
    with open_address(address, headers) as response:
        version = _version(response, address)
        if response.status == 206:
            rest = _first_byte(response) == start and before and before.continued_by(version)
            if not before or not rest:
                part.unlink(missing_ok=True)  # not the rest of what is here: start over
                return False
            version = before
        else:
            start = 0
            _check_answer(file, version, response)
            write_json(note, asdict(version))
        _check_room(part, version, start)
        return _copy(file, response, part, start, version.total, report)


def _version(response: http.client.HTTPResponse, address: str) -> _Version:
    headers = response.headers
    total: int | None = None
    if response.status == 206:
        span = re.fullmatch(r"bytes \d+-\d+/(\d+)", headers.get("Content-Range", ""))
        total = int(span[1]) if span else None
    elif re.fullmatch(r"\d{1,15}", headers.get("Content-Length", "")):
        total = int(headers["Content-Length"])
    return _Version(shown(address), headers.get("ETag"), headers.get("Last-Modified"), total)


def _first_byte(response: http.client.HTTPResponse) -> int | None:
    span = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(span[1]) if span else None


def _check_answer(file: RemoteFile, version: _Version, response: http.client.HTTPResponse) -> None:
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise Refused(_page(file))
    packed = response.headers.get("Content-Encoding", "identity")
    if packed.lower() != "identity":
        raise Refused(f"it came packed ({packed}), which was not asked for")
    if file.bytes is not None and version.total not in (None, file.bytes):
        raise Refused(f"it has {version.total:,} bytes there, expected {file.bytes:,}")


def _page(file: RemoteFile) -> str:
    return (
        f"a web page came instead of {file.name}: a log-in or error page of the server or of this "
        "network. Open the address in a browser to see it"
    )


def _check_room(part: Path, version: _Version, start: int) -> None:
    needed = (version.total or 0) - start
    free = shutil.disk_usage(part.parent).free
    if free < needed + SPARE_BYTES:
        raise ElmoError(
            f"{part.parent} has room for {free / 1e6:,.0f} MB, {needed / 1e6:,.0f} MB are needed; "
            "free some, or set ELMOKIT_CACHE to a directory on another disk"
        )


def _copy(
    file: RemoteFile,
    response: http.client.HTTPResponse,
    part: Path,
    start: int,
    total: int | None,
    report: Report,
) -> bool:
    """Append the answer to the part; whether all of it came."""
    limit = total if total is not None else file.bytes
    with part.open("rb+" if start else "wb", buffering=0) as out:
        out.seek(start)
        done = start
        report(file.name, done, limit)
        while True:
            try:
                block = response.read(BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise broken(error) from None
            if not block:
                break
            if not done:
                _check_start(file, block)
            done += len(block)
            if limit is not None and done > limit:
                raise Refused(f"more than {limit:,} bytes came")
            _write(out, block, part)
            report(file.name, done, limit)
    if total is not None:
        return done == total
    if file.bytes is not None and done != file.bytes:
        raise Refused(f"{done:,} bytes came, expected {file.bytes:,}")
    return True


def _check_start(file: RemoteFile, block: bytes) -> None:
    start = block[:256].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.lower().startswith(_PAGES):
        raise Refused(_page(file))
    if start.startswith(_LFS):
        raise Refused(
            f"a pointer of Git LFS came instead of {file.name}; the file itself has another "
            "address (on GitHub: media.githubusercontent.com/media/OWNER/NAME/...)"
        )


def _write(out: BinaryIO, block: bytes, part: Path) -> None:
    try:
        out.write(block)
    except OSError as error:
        raise ElmoError(
            f"cannot write to {part.parent}: {error.strerror}; what has come is kept. Free some "
            "room, or set ELMOKIT_CACHE to a directory on another disk"
        ) from None


def _read_note(note: Path, address: str) -> _Version | None:
    """The version of the part, if it came from this address."""
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        version = _Version(**json.loads(note.read_bytes()))
        if version.address == shown(address):
            return version
    return None
