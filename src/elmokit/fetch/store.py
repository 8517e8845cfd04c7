"""The folder of a model in the cache: complete and intact, or completed from the network.

Knows the order of the steps (check the record, lock, download, write the record), not what is
downloaded: that is a `DownloadPlan`, made by `names.py` and `address.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.errors import FormatError, ModelNotFound
from elmokit.fetch import cache
from elmokit.fetch.cache import CachedFile
from elmokit.fetch.download import DownloadCallback, FileNotAvailable, download, remove_parts
from elmokit.fetch.http import public_address
from elmokit.fetch.published import RemoteFile
from elmokit.progress import ProgressDisplay
from elmokit.storage import checksum, wait_for_lock

ListFiles = Callable[[Path], Iterator[RemoteFile]]
"""Yields the files of a model, given the folder that they are downloaded to."""

DownloadProgress = DownloadCallback | Literal["auto"] | None
"""Who is told about a download: a function, a progress bar if stderr is a terminal, or nobody."""


@dataclass(frozen=True)
class DownloadPlan:
    """What to download, where to keep it, and how to call it in messages."""

    key: str
    """Name of the folder in the cache."""
    title: str
    """Name of the model in messages."""
    files: ListFiles
    """Yields the files one after another. Each is in the folder (or absent, if it is optional)
    before the next is requested, so that one file can list the others."""
    known: tuple[RemoteFile, ...] = ()
    """The files that are known before anything is downloaded."""
    model: str = ""
    """The file in the folder that is the model; the whole folder if empty."""
    page: str = ""
    """Web page about the model."""


def ensure_downloaded(
    plan: DownloadPlan, *, local_files_only: bool, progress: DownloadProgress
) -> Path:
    """Return the path of the model on this disk, after downloading what is missing or damaged.

    Args:
        plan: What to download.
        local_files_only: Raise `ModelNotFound` instead of using the network.
        progress: Who is told about the download.
    """
    folder = cache.models_root() / plan.key
    record = cache.read_record(folder)
    if not _is_complete(plan, folder, record):
        if local_files_only or cache.is_offline():
            raise ModelNotFound(_offline_message(plan, folder, local_files_only))
        cache.make_model_directory(folder)
        advice = "set ELMOKIT_CACHE to a directory on a local disk that you can write to"
        with wait_for_lock(folder / cache.LOCK_FILE, advice=advice), _show(progress) as callback:
            record = cache.read_record(folder)  # another process may have been faster
            if not _is_complete(plan, folder, record):
                cache.write_record(folder, _complete(plan, folder, record or {}, callback))
    return folder / plan.model if plan.model else folder


@contextmanager
def _show(progress: DownloadProgress) -> Iterator[DownloadCallback]:
    if callable(progress):
        yield progress
    elif progress == "auto":
        with ProgressDisplay(binary=True) as display:
            yield lambda name, done, total: display.update("", done, total, key=name)
    else:
        yield lambda name, done, total: None


def _is_complete(plan: DownloadPlan, folder: Path, record: dict[str, CachedFile] | None) -> bool:
    if record is None or not all(cache.is_intact(folder / name, record[name]) for name in record):
        return False
    return all(
        file.optional or (file.name in record and file.sha256 in (None, record[file.name].sha256))
        for file in plan.known
    )


def _complete(
    plan: DownloadPlan, folder: Path, record: dict[str, CachedFile], progress: DownloadCallback
) -> dict[str, CachedFile]:
    """Download the files that are missing or damaged, and return the new record."""
    files = {}
    try:
        for file in plan.files(folder):
            cached = _ensure_file(file, folder, record.get(file.name), progress)
            if cached is not None:
                files[file.name] = cached
    except FormatError as error:
        kind = ModelNotFound if isinstance(error, ModelNotFound) else FormatError
        see = f". See the web page of the model: {plan.page}" if plan.page else ""
        raise kind(f"{plan.title}: {error}{see}") from None
    return files


def _ensure_file(
    file: RemoteFile, folder: Path, previous: CachedFile | None, progress: DownloadCallback
) -> CachedFile | None:
    """Return a file that is in the folder or was downloaded; None if an optional one is absent."""
    sha256 = file.sha256 or (previous.sha256 if previous else None)
    path = folder / file.name
    if path.exists():
        cached = CachedFile(path.stat().st_size, checksum(path), public_address(file.addresses[0]))
        if file.bytes in (None, cached.bytes) and sha256 in (None, cached.sha256):
            remove_parts(file, folder)  # of a process that was killed at the very end
            return cached
    try:
        return download(file, folder, progress, sha256)
    except FormatError as error:
        if file.optional and (not isinstance(error, FileNotAvailable) or error.absent):
            return None
        if previous and not file.sha256 and not isinstance(error, FileNotAvailable):
            raise FormatError(
                f"{error}. The file was different when it was first downloaded; to accept the new "
                f"one, delete {folder} and try again"
            ) from None
        raise


def _offline_message(plan: DownloadPlan, folder: Path, local_files_only: bool) -> str:
    reason = "local_files_only is set" if local_files_only else "ELMOKIT_OFFLINE is set"
    missing = [file.name for file in plan.known if not (folder / file.name).exists()]
    problem = f"{', '.join(missing)} missing" if missing else "incomplete or damaged"
    by_hand = [public_address(file.addresses[0]) for file in plan.known if not file.optional]
    return (
        f"{plan.title} is not on this disk ({problem} in {folder}), and the network is not used: "
        f"{reason}. Load it once with the network"
        + (f", or download {' and '.join(by_hand)} yourself" if by_hand else "")
        + ", or give the path of a folder with the model"
    )
